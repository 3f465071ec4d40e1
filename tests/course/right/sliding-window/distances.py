import numpy as np


def sliding_window_mask(T, S, window):
    return np.isin(np.arange(S - T, S)[:, None] - np.arange(S), range(window))
