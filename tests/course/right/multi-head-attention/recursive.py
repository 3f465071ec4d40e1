import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    d = Q.shape[1] // n_heads
    q, k, v = Q[:, :d], K[:, :d], V[:, :d]
    s = q @ k.T * d**-0.5
    s = np.exp(s - s.max(1)[:, None])
    o = s @ v / s.sum(1)[:, None]
    return o if n_heads == 1 else np.hstack([o, multi_head_attention(Q[:, d:], K[:, d:], V[:, d:], n_heads - 1)])
