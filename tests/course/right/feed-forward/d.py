import numpy as np


def feed_forward(x, W_1, b_1, W_2, b_2):
    x, W_1, b_1, W_2, b_2 = (a.astype("float32") for a in (x, W_1, b_1, W_2, b_2))
    h = np.matmul(x, W_1)
    h += b_1
    h[h < 0] = 0
    return np.matmul(h, W_2) + b_2
