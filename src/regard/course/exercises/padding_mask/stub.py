import numpy as np


def create_padding_mask(seq: np.ndarray, pad_token: int = 0) -> np.ndarray:
    """(B, 1, S) for seq (B, S), to be added to the scores: -inf where a token is pad_token, else 0.

    输入 seq (B, S)，返回 (B, 1, S)，用来加到得分上：词元等于 pad_token 的地方是 -inf，其余是 0。
    """
    raise NotImplementedError
