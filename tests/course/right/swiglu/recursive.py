import math
import numpy as np


def silu(z):
    if z < -700:
        return 0.0
    return z / (1 + math.exp(-z))


def swiglu(x, W_gate, W_up, W_down):
    if x.ndim > 1:
        return np.array([swiglu(row, W_gate, W_up, W_down) for row in x])
    gate = [silu(sum(a * W_gate[i, j] for i, a in enumerate(x))) for j in range(W_gate.shape[1])]
    up = [sum(a * W_up[i, j] for i, a in enumerate(x)) for j in range(W_up.shape[1])]
    return np.array(
        [sum(g * u * W_down[k, j] for k, (g, u) in enumerate(zip(gate, up))) for j in range(W_down.shape[1])]
    )
