"""The learning rate of "Attention Is All You Need": a warm-up, then an inverse square root. It contains one mistake.

《Attention Is All You Need》的学习率：先预热，再按平方根的倒数下降。这里面有一处错误。
"""

import numpy as np


def learning_rates(steps: np.ndarray, d_model: int = 512, warmup: int = 4000) -> np.ndarray:
    """The learning rate of each update; steps (N,), counted from 1 -> (N,)"""
    rising = steps * warmup**-0.5
    falling = steps**-0.5
    return d_model**-0.5 * np.minimum(rising, falling)
