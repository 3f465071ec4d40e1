import math

import numpy as np


def layer_norm(x, gamma, beta, epsilon=0.00001):
    rows = np.reshape(x, (-1, x.shape[-1]))
    out = []
    for row in rows:
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        out.append(
            [
                (value - mean) / math.sqrt(variance + epsilon) * g + b
                for value, g, b in zip(row, gamma, beta, strict=True)
            ]
        )
    return np.array(out).reshape(x.shape)
