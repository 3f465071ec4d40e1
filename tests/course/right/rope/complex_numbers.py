import numpy as np


def rope(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    z = x[..., :half] + 1j * x[..., half:]
    angle = np.asarray(positions, dtype=float).reshape(-1, 1) / base ** (np.arange(half) / half)
    z = z * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], -1)
