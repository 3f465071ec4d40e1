import math

import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    length, width = Q.shape
    e = width // n_heads
    out = np.empty((length, width), dtype=np.float32)
    for h in range(n_heads):
        for t in range(length):
            scores = [
                sum(float(Q[t, c]) * float(K[s, c]) for c in range(h * e, h * e + e)) / math.sqrt(e)
                for s in range(length)
            ]
            powers = [math.exp(score - max(scores)) for score in scores]
            for c in range(h * e, h * e + e):
                out[t, c] = sum(p * V[s, c] for s, p in enumerate(powers)) / sum(powers)
    return out
