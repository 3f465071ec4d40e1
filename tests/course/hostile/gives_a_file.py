import numpy as np
def softmax(x, axis):
    return np.memmap("numbers", dtype=float, mode="w+", shape=x.shape)
