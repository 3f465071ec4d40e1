import numpy as np


def compute_qkv(
    X: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # The same words in three roles: what each looks for, what it offers, what it passes on.
    # 同样的词，三种角色：要找什么，能被怎样找到，能给出什么。
    return X @ W_q, X @ W_k, X @ W_v


def self_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    scores = Q @ K.T / np.sqrt(K.shape[-1])  # T T
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V  # T d_v
