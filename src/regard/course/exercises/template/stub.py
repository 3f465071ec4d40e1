import numpy as np


def mean_pooling(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The mean of the rows of x (T, d_model) where mask (T,) is True.

    x (T, d_model) 中 mask (T,) 为 True 的各行的平均。
    """
    raise NotImplementedError
