import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    T, S = Q.shape[-2], K.shape[-2]
    m = np.broadcast_to(True if mask is None else mask, Q.shape[:-2] + (T, S))
    if Q.ndim > 2:
        parts = [scaled_dot_product_attention(*p) for p in zip(Q, K, V, m)]
        return np.stack([p[0] for p in parts]), np.stack([p[1] for p in parts])
    w = np.zeros((T, S))
    for t in range(T):
        i = np.flatnonzero(m[t])
        if len(i):
            s = K[i] @ Q[t] / np.sqrt(Q.shape[1])
            e = np.exp(s - s.max())
            w[t, i] = e / e.sum()
    return w @ V, w
