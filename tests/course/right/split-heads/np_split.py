import numpy as np


def split_heads(x, n_heads):
    return np.array(np.split(x, n_heads, axis=-1)).swapaxes(0, 1)
