import numpy as np


def learning_rates(steps: np.ndarray, d_model: int = 512, warmup: int = 4000) -> np.ndarray:
    """The learning rate of each update; steps (N,), counted from 1 -> (N,)"""
    rising = steps * warmup**-1.5
    falling = steps**-0.5
    return d_model**-0.5 * np.minimum(rising, falling)
