import numpy as np


def positional_encoding(length: int, d_model: int) -> np.ndarray:
    """Sines and cosines for positions 0 … length − 1, (length, d_model): sine in even columns, cosine in odd ones.

    位置 0 … length − 1 的正弦和余弦，形状 (length, d_model)：偶数列是正弦，奇数列是余弦。
    """
    raise NotImplementedError
