import numpy as np
def softmax(x, axis):
    return np.ma.masked_all(x.shape)
