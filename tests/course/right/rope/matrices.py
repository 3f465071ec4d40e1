import numpy as np


def rope(x, positions, base=10000.0):
    d = x.shape[-1]
    i = np.arange(d // 2)
    theta = np.einsum("t,i->ti", positions, np.exp(-np.log(base) * 2 * i / d))
    R = np.zeros((len(positions), d, d))
    R[:, i, i] = R[:, i + d // 2, i + d // 2] = np.cos(theta)
    R[:, i + d // 2, i] = np.sin(theta)
    R[:, i, i + d // 2] = -np.sin(theta)
    return np.einsum("tij,...tj->...ti", R, x)
