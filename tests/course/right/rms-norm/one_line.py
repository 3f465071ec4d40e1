import numpy as np


def rms_norm(x, gamma, eps=1e-6):
    return x * gamma / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + eps)
