"""Multi-head attention with one mask for each sample. It contains one mistake.

多头注意力，每个样本有自己的掩码。这里面有一处错误。
"""

import numpy as np


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """(B, T, D) -> (B, H, T, D / H)"""
    B, T, D = x.shape
    return x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)


def merge_heads(x: np.ndarray) -> np.ndarray:
    """(B, H, T, D / H) -> (B, T, D)"""
    B, H, T, E = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * E)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def multi_head_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray, n_heads: int) -> np.ndarray:
    """Q (B, T, D), K and V (B, S, D), mask (B, T, S), True = visible -> (B, T, D)"""
    Q, K, V = (split_heads(x, n_heads) for x in (Q, K, V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, H, T, S)
    scores = np.where(mask, scores, -np.inf)
    return merge_heads(softmax(scores) @ V)
