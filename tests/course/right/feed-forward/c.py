import numpy as np


def feed_forward(x, W_1, b_1, W_2, b_2):
    # the biases as one more row of the weights
    def with_one(a):
        return np.concatenate([a, np.ones((*a.shape[:-1], 1))], axis=-1)

    hidden = np.einsum("...d,df->...f", with_one(x), np.vstack([W_1, b_1]))
    return np.einsum("...f,fd->...d", with_one(np.clip(hidden, 0, None)), np.vstack([W_2, b_2]))
