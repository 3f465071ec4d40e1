import math

import numpy as np


def rms_norm(x, gamma, epsilon=0.000001, eps=None):
    eps = epsilon if eps is None else eps
    rows = np.reshape(x, (-1, x.shape[-1]))
    out = []
    for row in rows:
        rms = math.sqrt(sum(value * value for value in row) / len(row) + eps)
        out.append([g * value / rms for value, g in zip(row, gamma, strict=True)])
    return np.array(out).reshape(x.shape)
