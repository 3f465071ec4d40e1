import math

import numpy as np


def create_causal_mask(n):
    return np.array([[0.0] * (i + 1) + [-math.inf] * (n - i - 1) for i in range(n)])
