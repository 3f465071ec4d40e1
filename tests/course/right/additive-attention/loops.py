import math

import numpy as np


def additive_attention(Q, K, V, W_q, W_k, v):
    contexts, rows = [], []
    for q in Q:
        a = W_q.T @ q
        scores = [sum(v[n] * math.tanh(z) for n, z in enumerate(a + W_k.T @ k)) for k in K]
        top = max(scores)
        e = [math.exp(s - top) for s in scores]
        row = [one / sum(e) for one in e]
        rows.append(row)
        contexts.append(sum(w * value for w, value in zip(row, V, strict=True)))
    return np.array(contexts), np.array(rows)
