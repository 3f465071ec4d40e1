import numpy as np


def rope(x: np.ndarray, positions: np.ndarray, base: float = 10000.0) -> np.ndarray:
    d = x.shape[-1]
    frequencies = base ** (-2 * np.arange(d // 2) / d)
    angles = positions[:, None] * frequencies  # (T, d/2)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., : d // 2], x[..., d // 2 :]  # the pairs are (i, i + d/2)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
