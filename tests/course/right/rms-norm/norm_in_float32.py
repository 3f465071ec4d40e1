import numpy as np


def rms_norm(x, gamma, eps=1e-6):
    y = np.array(x, dtype=np.float32)
    length = np.linalg.norm(y, axis=-1, keepdims=True)
    y = y / np.hypot(length / np.sqrt(np.float32(y.shape[-1])), np.float32(eps) ** 0.5)
    return gamma.astype(np.float32) * y
