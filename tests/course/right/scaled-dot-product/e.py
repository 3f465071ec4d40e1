import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = Q @ K.swapaxes(-2, -1) / np.sqrt(Q.shape[-1])
    with np.errstate(all="ignore"):
        if mask is not None:
            scores = np.where(mask, scores, float("-inf"))
        weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    weights = np.where(np.isnan(weights), 0.0, weights)
    return weights @ V, weights
