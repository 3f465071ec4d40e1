import numpy as np


def split_heads(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=1)
