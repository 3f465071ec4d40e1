import numpy as np


def merge_heads(x):
    batch, n_heads, length, d_head = x.shape
    out = np.empty((batch, length, n_heads * d_head))
    for h in range(n_heads):
        for t in range(length):
            out[:, t, h * d_head : (h + 1) * d_head] = x[:, h, t]
    return out
