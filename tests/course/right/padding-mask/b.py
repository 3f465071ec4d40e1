import numpy as np


def create_padding_mask(ids, pad=0):
    rows = [[[float("-inf") if token == pad else 0.0 for token in row]] for row in ids]
    return np.array(rows, dtype=np.float32)
