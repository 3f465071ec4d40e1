"""Under the limit each time; together over it."""
import numpy as np
def softmax(x, axis):
    return np.zeros(1_500_000)
