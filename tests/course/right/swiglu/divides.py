import numpy as np


def swiglu(x, W_gate, W_up, W_down):
    g = np.einsum("...d,df->...f", x, W_gate)
    h = g / (1 + np.exp(-g)) * np.einsum("...d,df->...f", x, W_up)
    return np.einsum("...f,fd->...d", h, W_down)
