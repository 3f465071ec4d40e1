"""Masked attention and its training loss. One kind of query is forgotten, in two places.

带掩码的注意力和它的训练损失。有一种查询被忽略了，涉及两处。
"""

import numpy as np


def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Q (B, T, E), K (B, S, E), V (B, S, D), mask (B, T, S), True = visible -> (B, T, D)"""
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    return weights @ V


def training_loss(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray, wanted: np.ndarray) -> float:
    """The mean squared error of the outputs, over the queries that see at least one key."""
    errors = ((attend(Q, K, V, mask) - wanted) ** 2).mean(axis=-1)  # (B, T)
    real = mask.any(axis=-1)  # (B, T)
    return float((errors * real).sum() / (real.sum() + 1e-12))
