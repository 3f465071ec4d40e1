import numpy as np


def multi_head_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, n_heads: int) -> np.ndarray:
    """Attention in n_heads heads, each on its own columns of Q, K and V (T, d_model); returns (T, d_model).

    n_heads 个头各自在 Q、K、V (T, d_model) 的一段列上做注意力；返回 (T, d_model)。
    """
    raise NotImplementedError
