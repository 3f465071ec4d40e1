import numpy as np


def split_heads(x, num_heads):
    batch_size, seq_len, d_model = x.shape
    assert d_model % num_heads == 0
    d_k = d_model // num_heads
    out = np.zeros((batch_size, num_heads, seq_len, d_k))
    for h in range(num_heads):
        out[:, h] = x[:, :, h * d_k : (h + 1) * d_k]
    return out
