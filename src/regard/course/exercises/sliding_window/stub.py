import numpy as np


def sliding_window_mask(T: int, S: int, window: int) -> np.ndarray:
    """(T, S) booleans, True = visible: each query sees `window` keys, itself and those just before it.

    (T, S) 的布尔数组，True 表示可见：每个查询看得到 `window` 个键，即它自己和紧挨在它前面的那些。
    """
    raise NotImplementedError
