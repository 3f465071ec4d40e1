import numpy as np

PAD = 0


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """(B, S, D) -> (B, H, S, D / H)"""
    B, S, D = x.shape
    return x.reshape(B, S, n_heads, D // n_heads).swapaxes(1, 2)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sentence_vectors(
    ids: np.ndarray, embedding: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray, n_heads: int
) -> np.ndarray:
    """ids (B, S) -> (B, D): the mean over the real tokens of the self-attention output."""
    real = ids != PAD  # (B, S)
    x = embedding[ids]
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # (B, H, queries, keys)
    scores = np.where(real[:, None, None, :], scores, -1e9)
    out = (softmax(scores) @ V).swapaxes(1, 2).reshape(*ids.shape, -1)  # (B, S, D)
    return (out * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)
