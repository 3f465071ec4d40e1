import numpy as np
name = “softmax”
def softmax(x, axis):
    return x
