import numpy as np


def learning_rates(steps, d_model=512, warmup=4000):
    peak = (d_model * warmup) ** -0.5
    share = np.asarray(steps, dtype=float) / warmup
    return peak * np.minimum(share, share**-0.5)
