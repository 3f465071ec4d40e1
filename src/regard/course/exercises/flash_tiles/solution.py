import numpy as np

State = tuple[np.ndarray, np.ndarray, np.ndarray]


def add_tile(state: State, q: np.ndarray, k: np.ndarray, v: np.ndarray, q_start: int, k_start: int) -> State:
    top, total, output = state
    scores = q @ k.T / np.sqrt(q.shape[-1])  # (T, S) of this tile only
    hidden = k_start + np.arange(len(k)) > q_start + np.arange(len(q))[:, None]
    scores = np.where(hidden, -np.inf, scores)
    new_top = np.maximum(top, scores.max(axis=-1))
    # A query that has seen no key yet has the top -inf, and -inf - -inf is NaN. 还没看到键的查询，top 是 -inf。
    safe = np.where(new_top == -np.inf, 0.0, new_top)
    rescale = np.exp(top - safe)
    e = np.exp(scores - safe[:, None])
    return new_top, total * rescale + e.sum(axis=-1), output * rescale[:, None] + e @ v


def finish(state: State) -> tuple[np.ndarray, np.ndarray]:
    top, total, output = state
    total = np.where(total == 0, 1.0, total)  # a query that saw nothing: output 0, lse -inf
    return output / total[:, None], top + np.log(total)
