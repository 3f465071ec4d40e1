import numpy as np


def rotate_half(x):
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate((-second, first), axis=-1)


def rope(x, positions, base=10000.0):
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (np.arange(0, dim, 2) / dim))
    freqs = np.outer(positions, inv_freq)
    emb = np.concatenate((freqs, freqs), axis=-1)
    return x * np.cos(emb) + rotate_half(x) * np.sin(emb)
