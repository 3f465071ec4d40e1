import numpy as np


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def scaled_dot_product_attention(Q, K, V, mask=None):
    axes = [*range(K.ndim - 2), K.ndim - 1, K.ndim - 2]
    scores = np.matmul(Q, np.transpose(K, axes)) / np.sqrt(K.shape[-1])
    if mask is None:
        weights = softmax(scores)
    else:
        allowed = np.broadcast_to(mask, scores.shape)
        weights = softmax(np.where(allowed, scores, -1e9))
        weights = weights * allowed.any(axis=-1, keepdims=True)
    return np.matmul(weights, V), weights
