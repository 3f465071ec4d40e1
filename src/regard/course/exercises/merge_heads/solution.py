import numpy as np


def merge_heads(x: np.ndarray) -> np.ndarray:
    B, H, T, E = x.shape
    # Back to positions before heads; only then do the two last axes lie side by side.
    # 先换回位置在前、头在后，最后两个轴才相邻。
    turned = x.transpose(0, 2, 1, 3)  # B T H E
    return turned.reshape(B, T, H * E)
