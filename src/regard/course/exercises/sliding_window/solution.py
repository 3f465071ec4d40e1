import numpy as np


def sliding_window_mask(T: int, S: int, window: int) -> np.ndarray:
    query = np.arange(S - T, S)[:, None]  # the queries are the last T of S positions
    key = np.arange(S)
    return (key <= query) & (key > query - window)
