import math
import numpy as np


def sig(z):
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def lstm_cell(x, h, c, W_ih, W_hh, b_ih, b_hh):
    B, H = h.shape
    hn, cn = np.empty((B, H)), np.empty((B, H))
    for b in range(B):
        g = [float(W_ih[r] @ x[b] + b_ih[r] + W_hh[r] @ h[b] + b_hh[r]) for r in range(4 * H)]
        for k in range(H):
            cn[b, k] = sig(g[H + k]) * c[b, k] + sig(g[k]) * math.tanh(g[2 * H + k])
            hn[b, k] = sig(g[3 * H + k]) * math.tanh(cn[b, k])
    return hn, cn
