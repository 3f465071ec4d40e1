import numpy as np


def lstm_cell(x, h, c, W_ih, W_hh, b_ih, b_hh):
    H = h.shape[1]
    z = np.concatenate([x, h], axis=1) @ np.concatenate([W_ih, W_hh], axis=1).T + (b_ih + b_hh)
    s = 1 / (1 + np.exp(-z))
    new_c = s[:, H : 2 * H] * c + s[:, :H] * np.tanh(z[:, 2 * H : 3 * H])
    return s[:, 3 * H :] * np.tanh(new_c), new_c
