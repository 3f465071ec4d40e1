import numpy as np


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)  # divided by d_model, not by d_model - 1
    # eps inside the root: a row of equal numbers is divided by √eps, not by 0. eps 在根号里面：全相等的行也不会除以 0。
    normal = (x - mean) / np.sqrt(variance + eps)
    return gamma * normal + beta
