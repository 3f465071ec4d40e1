import numpy as np


def sliding_window_mask(T, S, window):
    causal = np.tril(np.ones((S, S), dtype=bool))
    too_old = np.tril(np.ones((S, S), dtype=bool), k=-window)
    return (causal & ~too_old)[S - T :]
