import numpy as np


def simple_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """softmax(Q Kᵀ / √d_k) V, with Q (T, d_k), K (S, d_k), V (S, d_v); returns (T, d_v).

    输入 Q (T, d_k)、K (S, d_k)、V (S, d_v)，返回 softmax(Q Kᵀ / √d_k) V，形状 (T, d_v)。
    """
    raise NotImplementedError
