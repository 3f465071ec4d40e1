import numpy as np


def sigmoid(z: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(z / 2)) / 2  # 1 / (1 + exp(-z)) without overflow. 等于 1 / (1 + exp(-z))，但不会溢出。


def lstm_cell(
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    W_ih: np.ndarray,
    W_hh: np.ndarray,
    b_ih: np.ndarray,
    b_hh: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    gates = x @ W_ih.T + b_ih + h @ W_hh.T + b_hh  # (B, 4H)
    i, f, g, o = np.split(gates, 4, axis=-1)
    c_new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h_new = sigmoid(o) * np.tanh(c_new)
    return h_new, c_new
