import numpy as np


def grouped_query_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    shared_by = len(Q) // len(K)
    K, V = np.repeat(K, shared_by, axis=0), np.repeat(V, shared_by, axis=0)  # (H, S, d_k), (H, S, d_v)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (H, T, S)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V
