import numpy as np
def soft​max(x, axis):
    return x
