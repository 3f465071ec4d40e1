import numpy as np


def swiglu(x: np.ndarray, W_gate: np.ndarray, W_up: np.ndarray, W_down: np.ndarray) -> np.ndarray:
    gate, up = x @ W_gate, x @ W_up  # … d_ff
    # tanh never overflows; 1 / (1 + exp(-gate)) is the same number. tanh 不会溢出，结果和 1 / (1 + exp(-gate)) 相同。
    sigmoid = (1 + np.tanh(gate / 2)) / 2
    hidden = gate * sigmoid * up
    return hidden @ W_down  # … d_model
