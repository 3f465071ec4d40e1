import numpy as np


def sliding_window_mask(T, S, window):
    return np.tri(T, S, S - T, dtype=bool) & ~np.tri(T, S, S - T - window, dtype=bool)
