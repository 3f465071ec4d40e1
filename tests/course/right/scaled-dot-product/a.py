import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    """The mask after the exponential and before the sum; the maximum is that of the visible scores."""
    scores = np.einsum("...td,...sd->...ts", Q, K) / Q.shape[-1] ** 0.5
    seen = np.ones(scores.shape, dtype=bool) if mask is None else np.broadcast_to(mask, scores.shape)
    top = scores.max(axis=-1, keepdims=True, where=seen, initial=-np.inf)
    weights = np.exp(np.minimum(scores - np.where(top > -np.inf, top, 0), 0)) * seen
    sums = weights.sum(-1, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    return np.einsum("...ts,...sv->...tv", weights, V), weights
