import numpy as np


def lstm_cell(x, h, c, W_ih, W_hh, b_ih, b_hh):
    H = c.shape[-1]
    gates = np.einsum("bd,ghd->gbh", x, W_ih.reshape(4, H, -1)) + np.einsum("bd,ghd->gbh", h, W_hh.reshape(4, H, H))
    gates = gates + (b_ih + b_hh).reshape(4, 1, H)
    opened = 0.5 * np.tanh(0.5 * gates) + 0.5
    cell = opened[1] * c + opened[0] * np.tanh(gates[2])
    return [opened[3] * np.tanh(cell), cell]
