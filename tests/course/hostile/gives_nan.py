import numpy as np
def softmax(x, axis):
    return np.full(x.shape, np.nan)
