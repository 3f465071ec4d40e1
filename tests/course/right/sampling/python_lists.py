import math
import numpy as np


def next_probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    top = max(logits)
    e = [math.exp((x - top) / temperature) for x in logits]
    pairs = sorted(((v / sum(e), i) for i, v in enumerate(e)), reverse=True)
    if top_k is not None:
        pairs = pairs[:top_k]
    z = sum(v for v, _ in pairs)
    pairs = [(v / z, i) for v, i in pairs]
    if top_p is not None:
        kept, total = [], 0.0
        for v, i in pairs:
            kept.append((v, i))
            total += v
            if total >= top_p:
                break
        z = sum(v for v, _ in kept)
        pairs = [(v / z, i) for v, i in kept]
    out = np.zeros(len(logits))
    for v, i in pairs:
        out[i] = v
    return out


def pick(probabilities, u):
    return next((i for i, c in enumerate(np.cumsum(probabilities)) if c > u), len(probabilities) - 1)
