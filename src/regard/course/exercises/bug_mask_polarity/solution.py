import numpy as np

PAD = 0


def padding_mask(ids: np.ndarray) -> np.ndarray:
    """(B, S), True where a token is real."""
    return ids != PAD


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Q (B, T, d_k), K (B, S, d_k), V (B, S, d_v), mask (B, S) -> (B, T, d_v)"""
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, T, S)
    scores = np.where(mask[:, None, :], scores, -np.inf)  # True = visible
    return softmax(scores) @ V


def encode(ids: np.ndarray, embedding: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray) -> np.ndarray:
    """ids (B, S) -> (B, S, d_v)"""
    x = embedding[ids]  # (B, S, d_model)
    return attention(x @ W_q, x @ W_k, x @ W_v, padding_mask(ids))
