import numpy as np


def sliding_window_mask(T, S, window):
    rows, columns = np.indices((T, S))
    distance = rows + (S - T) - columns
    return np.logical_and(distance >= 0, distance < window)
