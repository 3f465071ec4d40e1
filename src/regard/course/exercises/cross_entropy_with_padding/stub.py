import numpy as np


def cross_entropy(logits: np.ndarray, targets: np.ndarray, pad: int = 0) -> float:
    """The mean of -log softmax(logits)[target] over the targets that are not padding.

    对不是填充的目标，取 -log softmax(logits)[目标] 的平均值。
    """
    # logits (B, T, V), targets (B, T) integers -> one number
    raise NotImplementedError
