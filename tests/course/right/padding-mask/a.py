import numpy as np


def create_padding_mask(seq, pad_token=0):
    mask = np.zeros(seq.shape)
    mask[seq == pad_token] = -np.inf
    return np.expand_dims(mask, axis=1)
