import numpy as np


def learning_rates(steps, d_model=512, warmup=4000):
    rising = steps / warmup / np.sqrt(warmup)
    return np.where(steps < warmup, rising, 1 / np.sqrt(steps)) / np.sqrt(d_model)
