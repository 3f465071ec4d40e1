import numpy as np


def sliding_window_mask(T, S, window):
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        at = S - T + i
        mask[i, max(0, at - window + 1) : at + 1] = True
    return mask
