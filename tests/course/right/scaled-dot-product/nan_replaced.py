import numpy as np


def scaled_dot_product_attention(Q, K, V, mask=None):
    s = np.matmul(Q, np.moveaxis(K, -1, -2)) * Q.shape[-1] ** -0.5
    if mask is not None:
        s = s + np.where(mask, 0, -np.inf)
    with np.errstate(invalid="ignore"):
        w = np.exp(s - s.max(axis=-1, keepdims=True))
        w = w / w.sum(axis=-1, keepdims=True)
    w = np.where(np.isnan(w), 0, w)
    return w @ V, w
