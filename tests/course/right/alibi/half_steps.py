import numpy as np


def alibi_slopes(n_heads):
    power = 1 << (int(n_heads).bit_length() - 1)
    steps = np.r_[np.arange(power) + 1, np.arange(n_heads - power) + 0.5]
    return np.exp2(-8 * steps / power)


def alibi_bias(n_heads, T, S):
    offset = np.subtract.outer(np.arange(T) + (S - T), np.arange(S))
    return -np.multiply.outer(alibi_slopes(n_heads), np.where(offset < 0, -offset, offset))
