import numpy as np


def attend_with_cache(q, k, v, cache=None):
    K = [] if cache is None else list(cache[0])
    V = [] if cache is None else list(cache[1])
    out = []
    for a, b, c in zip(q, k, v):
        K.append(b)
        V.append(c)
        s = np.array(K) @ a / np.sqrt(len(a))
        e = np.exp(s - s.max())
        out.append(e @ np.array(V) / e.sum())
    return np.array(out), (np.array(K), np.array(V))
