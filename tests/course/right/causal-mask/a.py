import numpy as np


def create_causal_mask(n):
    return np.triu(np.full((n, n), -np.inf), k=1)
