import numpy as np


def cross_attention(x: np.ndarray, memory: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray) -> np.ndarray:
    # Queries come from x, keys and values from memory. 查询来自 x，键和值来自 memory。
    Q = x @ W_q  # T d_k
    K = memory @ W_k  # S d_k
    V = memory @ W_v  # S d_v
    scores = Q @ K.T / np.sqrt(K.shape[-1])  # T S
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V  # T d_v
