import numpy as np

State = tuple[np.ndarray, np.ndarray, np.ndarray]


def add_tile(state: State, q: np.ndarray, k: np.ndarray, v: np.ndarray, q_start: int, k_start: int) -> State:
    """The state of T queries after one more tile of S keys, under a causal mask.

    T 个查询再看一块 S 个键之后的状态，带因果掩码。
    """
    # state: top (T,), total (T,), output (T, d_v); q (T, d_k), k (S, d_k), v (S, d_v) -> the new state
    raise NotImplementedError


def finish(state: State) -> tuple[np.ndarray, np.ndarray]:
    """The attention output and the log-sum-exp of each query, after the last tile.

    最后一块之后，每个查询的注意力输出和 log-sum-exp。
    """
    # -> out (T, d_v), lse (T,)
    raise NotImplementedError
