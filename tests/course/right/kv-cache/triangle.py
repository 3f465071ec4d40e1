import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x, -1)[:, None])
    return e / np.sum(e, -1)[:, None]


def attend_with_cache(q, k, v, cache=None):
    if cache is not None:
        k = np.vstack((cache[0], k))
        v = np.vstack((cache[1], v))
    n_new, n_all = q.shape[0], k.shape[0]
    may_look = np.tril(np.ones((n_new, n_all)), n_all - n_new)
    weights = softmax(np.einsum("td,sd->ts", q, k) * q.shape[1] ** -0.5 + (1 - may_look) * -1e30)
    return np.einsum("ts,sv->tv", weights, v), (k, v)
