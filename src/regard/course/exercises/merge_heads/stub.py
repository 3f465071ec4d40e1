import numpy as np


def merge_heads(x: np.ndarray) -> np.ndarray:
    """(B, n_heads, T, d_head) becomes (B, T, n_heads · d_head): the heads concatenated in order.

    (B, n_heads, T, d_head) 变成 (B, T, n_heads · d_head)：各个头按顺序并排。
    """
    raise NotImplementedError
