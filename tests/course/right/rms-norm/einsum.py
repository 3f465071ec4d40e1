import numpy as np


def rms_norm(x, gamma, eps=1e-6):
    inverse = (np.einsum("...d,...d->...", x, x) / x.shape[-1] + eps) ** -0.5
    return np.einsum("...d,...,d->...d", x, inverse, gamma)
