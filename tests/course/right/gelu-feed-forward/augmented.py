import numpy as np


def gelu_feed_forward(x, W_1, b_1, W_2, b_2):
    """The biases as another row of the weights."""
    ones = np.ones((*x.shape[:-1], 1))
    h = np.concatenate([x, ones], axis=-1) @ np.vstack([W_1, b_1])
    share = (1 + np.tanh(np.sqrt(2 / np.pi) * np.polyval([0.044715, 0, 1, 0], h))) / 2
    return np.concatenate([share * h, ones], axis=-1) @ np.vstack([W_2, b_2])
