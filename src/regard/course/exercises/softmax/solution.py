import numpy as np


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    # exp overflows above 709. Taking the largest number away first changes nothing in the quotient.
    # 超过 709，exp 就溢出了。先减去最大的数，商不变。
    shifted = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=axis, keepdims=True)
