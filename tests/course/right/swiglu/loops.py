import math

import numpy as np


def silu(g):
    if g < 0:
        e = math.exp(g)
        return g * e / (1 + e)
    return g / (1 + math.exp(-g))


def swiglu(x, W_gate, W_up, W_down):
    out = []
    for row in x.reshape(-1, x.shape[-1]):
        hidden = [
            silu(sum(row[i] * W_gate[i, j] for i in range(len(row)))) * sum(row[i] * W_up[i, j] for i in range(len(row)))
            for j in range(W_gate.shape[1])
        ]
        out.append([sum(h * w for h, w in zip(hidden, W_down[:, k], strict=True)) for k in range(W_down.shape[1])])
    return np.array(out).reshape(*x.shape[:-1], W_down.shape[1])
