import numpy as np


def create_causal_mask(n):
    mask = np.zeros((n, n))
    mask[np.triu_indices(n, 1)] = -np.inf
    return mask
