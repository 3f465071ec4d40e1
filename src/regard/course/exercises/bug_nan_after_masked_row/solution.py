import numpy as np


def attend(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Q (B, T, E), K (B, S, E), V (B, S, D), mask (B, T, S), True = visible -> (B, T, D)"""
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    empty = ~mask.any(axis=-1, keepdims=True)
    scores = np.where(mask | empty, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return np.where(empty, 0.0, weights @ V)


def training_loss(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray, wanted: np.ndarray) -> float:
    """The mean squared error of the outputs, over the queries that see at least one key."""
    errors = ((attend(Q, K, V, mask) - wanted) ** 2).mean(axis=-1)  # (B, T)
    real = mask.any(axis=-1)  # (B, T)
    return float((errors * real).sum() / max(real.sum(), 1))
