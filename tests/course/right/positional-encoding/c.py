import numpy as np


def positional_encoding(length, d_model):
    # cos(a) = sin(a + π/2): one sine for all columns
    column = np.arange(d_model)
    angles = np.outer(np.arange(length), 1 / np.power(10000.0, 2 * (column // 2) / d_model))
    return np.sin(angles + np.pi / 2 * (column % 2))
