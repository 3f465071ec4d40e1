import numpy as np


def gelu_feed_forward(x, W1, b1, W2, b2):
    return (h := x @ W1 + b1) * 0.5 * (np.tanh(0.7978845608028654 * h * (1 + 0.044715 * h**2)) + 1) @ W2 + b2
