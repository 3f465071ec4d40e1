import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    T, D = Q.shape
    d = D // n_heads
    out = np.zeros((T, D))
    for h in range(n_heads):
        m = (np.arange(D) // d == h).astype(float)
        s = (Q * m) @ K.T / np.sqrt(d)
        e = np.exp(s - s.max(-1, keepdims=True))
        out += e / e.sum(-1, keepdims=True) @ (V * m)
    return out
