import numpy as np


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """(B, T, d_model) becomes (B, n_heads, T, d_head); head h has the columns h·d_head … (h+1)·d_head.

    (B, T, d_model) 变成 (B, n_heads, T, d_head)；第 h 个头拿第 h·d_head … (h+1)·d_head 列。
    """
    raise NotImplementedError
