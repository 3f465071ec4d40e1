# Other right answers: each file in this folder must pass. 其他正确写法：这个文件夹里的每个文件都必须通过。
import numpy as np


def mean_pooling(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    total, count = np.zeros(x.shape[1]), 0
    for row, is_token in zip(x, mask, strict=True):
        if is_token:
            total, count = total + row, count + 1
    return total / count if count else total
