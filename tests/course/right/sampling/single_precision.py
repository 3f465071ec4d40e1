import numpy as np


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    z = logits.astype(np.float32) / np.float32(temperature)
    p = np.exp(z - z.max())
    p /= p.sum()
    rank = (-p).argsort().argsort()
    if top_k is not None:
        p = np.where(rank < top_k, p, 0)
        p = p / p.sum()
    if top_p is not None:
        ordered = np.sort(p)[::-1]
        size = int(np.searchsorted(np.cumsum(ordered), np.float32(top_p))) + 1
        p = np.where(rank < size, p, 0)
    return p / p.sum()


def pick(probabilities, u):
    return int((np.cumsum(probabilities) <= u).sum())
