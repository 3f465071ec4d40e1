import numpy as np


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Each row of x (…, d_model) with mean 0 and variance 1, then times gamma and plus beta, both (d_model,).

    把 x (…, d_model) 的每一行变成均值 0、方差 1，再乘 gamma、加 beta（都是 (d_model,)）。
    """
    raise NotImplementedError
