import numpy as np


def mask_tokens(
    ids: np.ndarray, special: np.ndarray, choose: np.ndarray, kind: np.ndarray, random_ids: np.ndarray, mask_id: int
) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and targets of BERT's masked language modelling, from given random numbers.

    根据给定的随机数，生成 BERT 掩码语言模型的输入和目标。
    """
    # all arrays (B, T) -> inputs (B, T), targets (B, T), both integers
    raise NotImplementedError
