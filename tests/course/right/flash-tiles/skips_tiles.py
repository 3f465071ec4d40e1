import numpy as np


def add_tile(state, q, k, v, q_start, k_start):
    last_query, last_key = q_start + len(q) - 1, k_start + len(k) - 1
    if k_start > last_query:  # the whole tile is hidden: nothing to compute
        return state
    m, l, o = state
    s = np.einsum("td,sd->ts", q, k) * q.shape[1] ** -0.5
    if last_key > q_start:
        s[np.subtract.outer(np.arange(q_start, last_query + 1), np.arange(k_start, last_key + 1)) < 0] = -np.inf
    n = np.maximum(m, s.max(1))
    seen = n > -np.inf
    p, scale = np.zeros_like(s), np.zeros_like(n)
    p[seen] = np.exp(s[seen] - n[seen, None])
    scale[seen] = np.exp(m[seen] - n[seen])
    return n, l * scale + p.sum(1), o * scale[:, None] + p @ v


def finish(state):
    m, l, o = state
    with np.errstate(divide="ignore"):
        return np.divide(o, l[:, None], out=np.zeros_like(o), where=l[:, None] > 0), m + np.log(l)
