import numpy as np


def online_softmax_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention that reads the keys `block` at a time: the output and the log-sum-exp of each row of scores.

    每次只看 `block` 个键的注意力：返回输出，以及每行得分的 log-sum-exp。
    """
    # Q (T, d_k), K (S, d_k), V (S, d_v) -> output (T, d_v), lse (T,)
    raise NotImplementedError
