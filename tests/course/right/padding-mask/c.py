import numpy as np


def create_padding_mask(seq, pad_token=0):
    batch, length = seq.shape
    is_pad = np.equal(seq, pad_token)[:, np.newaxis, :]
    mask = np.where(~is_pad, 0.0, -np.inf)
    assert mask.shape == (batch, 1, length)
    return mask
