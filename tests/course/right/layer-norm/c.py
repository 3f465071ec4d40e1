import numpy as np


def layer_norm(x, gamma, beta, eps=1e-5):
    d = x.shape[-1]
    centre = np.eye(d) - np.ones((d, d)) / d  # subtracts the mean
    away = x @ centre
    inverse = (np.einsum("...d,...d->...", away, away) / d + eps) ** -0.5
    return np.einsum("...d,...,d->...d", away, inverse, gamma) + beta
