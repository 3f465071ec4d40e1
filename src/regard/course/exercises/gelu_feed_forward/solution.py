import numpy as np


def gelu_feed_forward(x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray) -> np.ndarray:
    h = x @ W_1 + b_1  # … d_ff
    inner = np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)
    hidden = h / 2 * (1 + np.tanh(inner))
    return hidden @ W_2 + b_2  # … d_model
