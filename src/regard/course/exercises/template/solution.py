import numpy as np


def mean_pooling(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    tokens = mask[:, None].astype(float)
    count = max(tokens.sum(), 1.0)
    return (x * tokens).sum(axis=0) / count
