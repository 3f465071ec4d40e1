import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    """Softmax first, then the mask, then divide again: the same numbers."""
    scores = np.einsum("...td,...sd->...ts", Q, K) / Q.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    if mask is not None:
        weights = weights * mask
    sums = weights.sum(-1, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    return np.einsum("...ts,...sv->...tv", weights, V), weights
