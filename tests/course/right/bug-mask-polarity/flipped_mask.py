import numpy as np

PAD = 0


def padding_mask(ids):
    """(B, S), True where a token is padding."""
    return ids == PAD


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(Q, K, V, mask):
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    scores = np.where(mask[:, None, :], -np.inf, scores)
    return softmax(scores) @ V


def encode(ids, embedding, W_q, W_k, W_v):
    x = embedding[ids]
    return attention(x @ W_q, x @ W_k, x @ W_v, padding_mask(ids))
