import numpy as np


def label_smoothing_loss(logits: np.ndarray, targets: np.ndarray, smoothing: float, ignore_index: int = -100) -> float:
    """Cross-entropy against smoothed targets, averaged over the tokens that count.

    对平滑后的目标求交叉熵，在计入的词元上取平均。
    """
    # logits (N, V), targets (N,) integers -> one number
    raise NotImplementedError
