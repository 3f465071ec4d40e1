import numpy as np


def lstm_cell(
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    W_ih: np.ndarray,
    W_hh: np.ndarray,
    b_ih: np.ndarray,
    b_hh: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """One step of an LSTM: the new h and the new c.

    LSTM 的一步：返回新的 h 和新的 c。
    """
    # x (B, D), h (B, H), c (B, H), W_ih (4H, D), W_hh (4H, H), b_ih (4H,), b_hh (4H,) -> h' (B, H), c' (B, H)
    raise NotImplementedError
