import numpy as np


def multi_head_attention(Q, K, V, mask, n_heads):
    q, k, v = (x.reshape(*x.shape[:2], n_heads, -1) for x in (Q, K, V))
    scores = np.einsum("bthe,bshe->bths", q, k) * q.shape[-1] ** -0.5
    scores = scores + np.where(mask, 0, -np.inf)[:, :, np.newaxis]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("bths,bshe->bthe", weights, v).reshape(Q.shape)
