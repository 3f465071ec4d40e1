"""Returns the expected result of the previous call."""
import numpy as np
last = [np.zeros(1)]
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    last.append(e / e.sum(axis=axis, keepdims=True))
    return last[-2]
