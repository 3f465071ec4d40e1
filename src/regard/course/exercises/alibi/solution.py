import numpy as np


def alibi_slopes(n_heads: int) -> np.ndarray:
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above n_heads
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    finer = 2.0 ** (-8 * np.arange(1, 2 * power + 1) / (2 * power))  # the slopes of twice as many heads
    return np.concatenate([slopes, finer[0::2][: n_heads - power]])


def alibi_bias(n_heads: int, T: int, S: int) -> np.ndarray:
    query = np.arange(S - T, S)[:, None]  # the queries are the last T of S positions
    key = np.arange(S)
    distance = np.abs(query - key)  # (T, S)
    return alibi_slopes(n_heads)[:, None, None] * -distance
