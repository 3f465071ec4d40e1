import numpy as np


def feed_forward(x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray) -> np.ndarray:
    hidden = x @ W_1 + b_1  # … d_ff
    # Without ReLU, two linear layers would equal a single one. 没有 ReLU，两个线性层就等于一个。
    hidden = np.maximum(hidden, 0)
    return hidden @ W_2 + b_2  # … d_model
