import numpy as np


def create_causal_mask(n):
    # log 1 = 0, log 0 = -inf
    with np.errstate(divide="ignore"):
        return np.log(np.tri(n))
