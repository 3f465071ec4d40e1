"""Each result is under the limit; together they exceed it."""
import numpy as np
def softmax(x, axis):
    return np.zeros(1_500_000)
