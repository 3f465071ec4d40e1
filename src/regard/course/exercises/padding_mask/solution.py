import numpy as np


def create_padding_mask(seq: np.ndarray, pad_token: int = 0) -> np.ndarray:
    mask = np.where(seq == pad_token, -np.inf, 0.0)  # B S
    # The middle axis is for the queries: padding is masked for all of them. 中间的轴对应查询：填充对所有查询都被屏蔽。
    return mask[:, None, :]  # B 1 S
