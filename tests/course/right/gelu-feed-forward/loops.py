import math

import numpy as np


def gelu(h):
    return 0.5 * h * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * h * h * h)))


def gelu_feed_forward(x, W_1, b_1, W_2, b_2):
    out = []
    for row in x.reshape(-1, x.shape[-1]):
        hidden = [gelu(sum(row[i] * W_1[i, j] for i in range(len(row))) + b_1[j]) for j in range(len(b_1))]
        out.append([sum(h * w for h, w in zip(hidden, W_2[:, k], strict=True)) + b_2[k] for k in range(len(b_2))])
    return np.array(out).reshape(*x.shape[:-1], len(b_2))
