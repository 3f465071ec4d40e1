import math

import numpy as np


def sigma(z):
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def lstm_cell(x, h, c, W_ih, W_hh, b_ih, b_hh):
    B, H = h.shape
    hidden, cell = np.empty((B, H)), np.empty((B, H))
    for b in range(B):
        for n in range(H):
            i, f, g, o = (
                float(W_ih[k] @ x[b] + b_ih[k] + W_hh[k] @ h[b] + b_hh[k]) for k in (n, H + n, 2 * H + n, 3 * H + n)
            )
            cell[b, n] = sigma(f) * c[b, n] + sigma(i) * math.tanh(g)
            hidden[b, n] = sigma(o) * math.tanh(cell[b, n])
    return hidden, cell
