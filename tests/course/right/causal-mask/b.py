import numpy as np


def create_causal_mask(size):
    mask = np.zeros((size, size), dtype=np.float32)
    for i in range(size):
        for j in range(i + 1, size):
            mask[i, j] = float("-inf")
    return mask
