import numpy as np


def rms_norm(x: np.ndarray, gamma: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Each row of x (…, d_model) divided by its root mean square, then times gamma (d_model,).

    把 x (…, d_model) 的每一行除以它的均方根，再乘 gamma (d_model,)。
    """
    raise NotImplementedError
