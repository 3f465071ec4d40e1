import numpy as np


def split_heads(x, n_heads):
    parts = np.array_split(x, n_heads, axis=2)
    return np.concatenate([part[:, None] for part in parts], axis=1)
