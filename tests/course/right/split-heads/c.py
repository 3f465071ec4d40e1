import numpy as np


def split_heads(x, n_heads):
    return np.swapaxes(x.reshape(*x.shape[:-1], n_heads, -1), 1, 2)
