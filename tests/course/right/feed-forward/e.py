import numpy as np


def feed_forward(x, W_1, b_1, W_2, b_2):
    hidden = np.tensordot(x, W_1, axes=1) + b_1
    return (hidden + np.abs(hidden)) / 2 @ W_2 + b_2
