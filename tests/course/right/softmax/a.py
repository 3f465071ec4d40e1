import numpy as np


def softmax(x, axis):
    largest = np.max(x, axis, keepdims=True)
    log_sum = largest + np.log(np.sum(np.exp(x - largest), axis, keepdims=True))
    return np.exp(x - log_sum)
