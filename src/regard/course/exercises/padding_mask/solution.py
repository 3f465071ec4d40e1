import numpy as np


def create_padding_mask(seq: np.ndarray, pad_token: int = 0) -> np.ndarray:
    mask = np.where(seq == pad_token, -np.inf, 0.0)  # B S
    # The axis in the middle is for the queries: none of them may see padding. 中间的轴留给查询：谁都不能看填充。
    return mask[:, None, :]  # B 1 S
