import numpy as np


def additive_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    pairs = (Q @ W_q)[:, None, :] + (K @ W_k)[None, :, :]  # (T, S, d_a): each query with each key
    scores = np.tanh(pairs) @ v  # (T, S)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V, weights
