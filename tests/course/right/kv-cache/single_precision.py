import numpy as np


def attend_with_cache(q, k, v, cache=None):
    q, k, v = (array.astype(np.float32) for array in (q, k, v))
    K, V = (
        (k, v)
        if cache is None
        else (np.vstack([old.astype(np.float32), new]) for old, new in zip(cache, (k, v), strict=True))
    )
    T, S = len(q), len(K)
    scores = q @ K.T / np.float32(np.sqrt(q.shape[1]))
    scores[np.triu_indices(T, S - T + 1, S)] = -1e9
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return [e @ V / e.sum(axis=1, keepdims=True), [K, V]]
