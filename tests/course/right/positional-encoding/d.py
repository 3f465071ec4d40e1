import numpy as np


def positional_encoding(length, d_model):
    """e^(i·angle): the imaginary part is the sine, the real part the cosine."""
    rates = 10000.0 ** -(np.arange(d_model // 2) / (d_model / 2))
    waves = np.exp(1j * np.arange(length)[:, None] * rates)
    return np.stack([waves.imag, waves.real], axis=-1).reshape(length, d_model)
