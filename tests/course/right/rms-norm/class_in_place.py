import numpy as np


class RMS:
    def __init__(self, gamma, eps):
        self.gamma, self.eps = gamma, eps

    def __call__(self, x):
        out = np.array(x, dtype=np.float64)
        out /= np.sqrt(np.square(out).mean(-1)[..., np.newaxis] + self.eps)
        out *= self.gamma
        return out


def rms_norm(x, gamma, eps=1e-6):
    return RMS(gamma, eps)(x)
