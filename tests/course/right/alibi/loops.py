import numpy as np


def alibi_slopes(n_heads):
    p = 1
    while 2 * p <= n_heads:
        p *= 2
    slopes = []
    for h in range(1, n_heads + 1):
        slopes.append(2 ** (-8 * h / p) if h <= p else 2 ** (-8 * (2 * (h - p) - 1) / (2 * p)))
    return np.array(slopes)


def alibi_bias(n_heads, T, S):
    bias = np.zeros((n_heads, T, S))
    for h, slope in enumerate(alibi_slopes(n_heads)):
        for i in range(T):
            for j in range(S):
                bias[h, i, j] = -slope * abs(S - T + i - j)
    return bias
