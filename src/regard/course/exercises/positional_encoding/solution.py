import numpy as np


def positional_encoding(length: int, d_model: int) -> np.ndarray:
    position = np.arange(length)[:, None]  # T 1
    i = np.arange(d_model // 2)  # i counts pairs of columns, not columns. i 数的是“对”，不是列。
    angle = position / 10000 ** (2 * i / d_model)  # T D/2
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return table
