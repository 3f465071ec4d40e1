import numpy as np


class FF:
    def __init__(self, *w):
        self.w = w

    def __call__(self, x):
        W_1, b_1, W_2, b_2 = self.w
        h = x.dot(W_1) + b_1
        return ((h + np.abs(h)) / 2).dot(W_2) + b_2


def feed_forward(x, W_1, b_1, W_2, b_2):
    return FF(W_1, b_1, W_2, b_2)(x)
