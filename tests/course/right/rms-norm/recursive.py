import numpy as np


def rms_norm(x, gamma, eps=1e-6):
    if x.ndim == 1:
        s = sum(float(a) ** 2 for a in x) / len(x)
        return np.array([g * a / (s + eps) ** 0.5 for g, a in zip(gamma, x)])
    return np.stack([rms_norm(row, gamma, eps) for row in x])
