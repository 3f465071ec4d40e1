import numpy as np


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(logits)[::-1]
    z = logits[order] / temperature
    z = z - z[0]
    keep = np.ones(len(z), dtype=bool)
    if top_k is not None:
        keep[top_k:] = False
    weights = np.where(keep, np.exp(z), 0.0)
    if top_p is not None:
        share = np.cumsum(weights) / np.sum(weights)
        keep[1:] &= share[:-1] < top_p
        weights = weights * keep
    out = np.zeros_like(weights)
    out[order] = weights / weights.sum()
    return out


def pick(probabilities, u):
    low = 0.0
    for i in range(len(probabilities)):
        high = low + probabilities[i]
        if low <= u < high:
            return i
        low = high
