import numpy as np


def merge_heads(heads):
    moved = np.moveaxis(heads, 1, 2)
    return moved.reshape(*moved.shape[:2], -1)
