import numpy as np


def scaled_dot_product_attention(query, key, value, mask=None):
    query, key, value = (a.astype(np.float32) for a in (query, key, value))
    scores = query @ np.moveaxis(key, -1, -2) * np.float32(key.shape[-1] ** -0.5)
    bias = np.zeros_like(scores)
    if mask is not None:
        bias[~np.broadcast_to(mask, scores.shape)] = -np.inf
    scores = scores + bias
    top = scores.max(axis=-1, keepdims=True)
    top[top == -np.inf] = 0
    exp = np.exp(scores - top)
    weights = exp / np.maximum(exp.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)
    return weights @ value, weights
