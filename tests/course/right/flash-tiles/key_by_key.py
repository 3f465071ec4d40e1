import numpy as np


def add_tile(state, q, k, v, q_start, k_start):
    m, l, o = (np.array(a) for a in state)
    for j in range(k.shape[0]):
        rows = np.flatnonzero(q_start + np.arange(q.shape[0]) >= k_start + j)
        s = q[rows] @ k[j] / np.sqrt(k.shape[1])
        new = np.maximum(m[rows], s)
        a, e = np.exp(m[rows] - new), np.exp(s - new)
        m[rows] = new
        l[rows] = l[rows] * a + e
        o[rows] = o[rows] * a[:, None] + np.outer(e, v[j])
    return m, l, o


def finish(state):
    m, l, o = state
    safe = np.where(l > 0, l, 1)
    return o / safe[:, None], m + np.log(safe)
