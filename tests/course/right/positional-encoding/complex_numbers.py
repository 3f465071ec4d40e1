import numpy as np


def positional_encoding(length, d_model):
    z = np.exp(1j * np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model))
    return np.dstack((z.imag, z.real)).reshape(length, d_model)
