import math

import numpy as np


def learning_rates(steps, d_model=512, warmup=4000):
    rates = []
    for step in steps.tolist():
        lower = min(1 / math.sqrt(step), step / (warmup * math.sqrt(warmup)))
        rates.append(lower / math.sqrt(d_model))
    return np.array(rates)
