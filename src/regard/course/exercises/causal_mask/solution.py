import numpy as np


def create_causal_mask(n: int) -> np.ndarray:
    query = np.arange(n)[:, None]
    key = np.arange(n)
    # np.where chooses; multiplying by -inf would make 0 · -inf = NaN. 用 np.where 来选；乘 -inf 会得到 0 · -inf = NaN。
    return np.where(key > query, -np.inf, 0.0)
