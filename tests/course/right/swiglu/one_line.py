import numpy as np


def swiglu(x, W_gate, W_up, W_down):
    g = x @ W_gate
    return (g / (1 + np.exp(-g)) * (x @ W_up)) @ W_down
