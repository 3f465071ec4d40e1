import math

import numpy as np


def simple_attention(Q, K, V):
    """With loops, number by number."""
    out = []
    for q in Q:
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)) for k in K]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        out.append(sum((power / total) * v for power, v in zip(powers, V, strict=True)))
    return np.array(out)
