import numpy as np


def create_padding_mask(seq, pad_token=0):
    masked = np.ma.array(np.zeros(seq.shape), mask=seq == pad_token)
    return masked.filled(-np.inf).reshape(len(seq), 1, -1)
