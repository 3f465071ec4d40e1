import numpy as np


def compute_qkv(
    X: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q, K and V from X (T, d_model), with W_q and W_k (d_model, d_k) and W_v (d_model, d_v).

    由 X (T, d_model) 算出 Q、K、V；W_q 和 W_k 是 (d_model, d_k)，W_v 是 (d_model, d_v)。
    """
    raise NotImplementedError


def self_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """softmax(Q Kᵀ / √d_k) V, (T, d_v).

    softmax(Q Kᵀ / √d_k) V，形状 (T, d_v)。
    """
    raise NotImplementedError
