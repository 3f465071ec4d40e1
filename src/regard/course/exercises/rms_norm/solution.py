import numpy as np


def rms_norm(x: np.ndarray, gamma: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    mean_square = (x**2).mean(axis=-1, keepdims=True)  # no mean is subtracted. 不减均值。
    return gamma * x / np.sqrt(mean_square + eps)
