import numpy as np


def cross_attention(x: np.ndarray, memory: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, W_v: np.ndarray) -> np.ndarray:
    """Each of the T rows of x attends to the S rows of memory; returns (T, d_v).

    x 的 T 行各自去看 memory 的 S 行；返回 (T, d_v)。
    """
    raise NotImplementedError
