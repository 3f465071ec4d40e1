import math

import numpy as np


def rope(x, positions, base=10000.0):
    out = np.empty_like(x)
    T, d = x.shape[-2:]
    flat, out_flat = x.reshape(-1, T, d), out.reshape(-1, T, d)
    for n in range(len(flat)):
        for t in range(T):
            for i in range(d // 2):
                theta = float(positions[t]) * math.pow(base, -2 * i / d)
                a, b = flat[n, t, i], flat[n, t, i + d // 2]
                out_flat[n, t, i] = a * math.cos(theta) - b * math.sin(theta)
                out_flat[n, t, i + d // 2] = b * math.cos(theta) + a * math.sin(theta)
    return out
