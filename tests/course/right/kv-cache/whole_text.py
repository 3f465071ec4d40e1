import numpy as np


def attend_with_cache(q, k, v, cache=None):
    old_k, old_v = (k[:0], v[:0]) if cache is None else cache
    K, V = np.r_[old_k, k], np.r_[old_v, v]
    # Queries of old positions do not matter: they are zeros, and their rows are removed.
    everything = np.r_[np.zeros_like(old_k), q]
    scores = everything @ K.T / np.sqrt(K.shape[1])
    scores[np.triu_indices(len(K), 1)] = -np.inf
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    return (scores @ V)[len(old_k) :], (K, V)
