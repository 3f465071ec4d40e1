import numpy as np


def rope(x: np.ndarray, positions: np.ndarray, base: float = 10000.0) -> np.ndarray:
    """Rotate each pair (x[i], x[i + d/2]) by the angle position · base^(-2i/d).

    把每一对 (x[i], x[i + d/2]) 旋转角度 位置 · base^(-2i/d)。
    """
    # x (..., T, d), d even; positions (T,) -> (..., T, d)
    raise NotImplementedError
