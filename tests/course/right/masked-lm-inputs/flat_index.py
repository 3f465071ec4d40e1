import numpy as np


def mask_tokens(ids, special, choose, kind, random_ids, mask_id):
    i = np.flatnonzero((choose < 0.15) & (special == 0))
    x, y = ids.flatten(), np.full(ids.size, -100, dtype=ids.dtype)
    y[i] = x[i]
    k = kind.ravel()[i]
    x[i[k < 0.8]] = mask_id
    r = i[(k >= 0.8) & (k < 0.9)]
    x[r] = random_ids.ravel()[r]
    return x.reshape(ids.shape), y.reshape(ids.shape)
