import math

import numpy as np


def alibi_slopes(n):
    # the code of the paper
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return np.array([start * start**i for i in range(n)])
    closest = 2 ** math.floor(math.log2(n))
    return np.concatenate([alibi_slopes(closest), alibi_slopes(2 * closest)[0::2][: n - closest]])


def alibi_bias(n_heads, T, S):
    positions = np.arange(S)
    distances = np.abs(positions[None, :] - positions[:, None])[S - T :]
    return np.einsum("h,ts->hts", alibi_slopes(n_heads), -distances.astype(float))
