import numpy as np


def layer_norm(x, gamma, beta, eps=1e-5):
    f = x.reshape(-1, x.shape[-1]).T
    y = (f - f.mean(0)) / np.sqrt(f.std(0) ** 2 + eps)
    return (y.T * gamma + beta).reshape(x.shape)
