import numpy as np


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    x = np.array(logits, dtype=float) / temperature
    if top_k is not None and top_k < len(x):
        x[x < np.partition(x, -top_k)[-top_k]] = -np.inf
    p = np.exp(x - x.max())
    p /= p.sum()
    if top_p is not None:
        order = np.argsort(-p)
        c = np.cumsum(p[order])
        drop = order[np.concatenate(([False], c[:-1] >= top_p))]
        p[drop] = 0
        p /= p.sum()
    return p


def pick(probabilities, u):
    return int(np.argmax(np.cumsum(probabilities) > u))
