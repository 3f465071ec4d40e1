import numpy as np


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    B, T, d_model = x.shape
    # First cut only the last axis, then move the heads forward; one reshape alone would cut the text.
    # 先只切最后一个轴，再把头移到前面；只用一次 reshape 会把位置打乱。
    parts = x.reshape(B, T, n_heads, d_model // n_heads)
    return parts.transpose(0, 2, 1, 3)  # B H T E
