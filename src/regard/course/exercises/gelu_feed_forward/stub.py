import numpy as np


def gelu_feed_forward(x: np.ndarray, W_1: np.ndarray, b_1: np.ndarray, W_2: np.ndarray, b_2: np.ndarray) -> np.ndarray:
    """GELU(x W_1 + b_1) W_2 + b_2, the same for every position of x (…, d_model).

    GELU(x W_1 + b_1) W_2 + b_2，对 x (…, d_model) 的每个位置都一样。
    """
    raise NotImplementedError
