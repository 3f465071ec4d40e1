import numpy as np


def simple_attention(Q, K, V):
    """Divide at the very end: Σ exp(s) v / Σ exp(s)."""
    s = np.inner(Q, K) / np.sqrt(np.size(K, 1))
    e = np.exp(s - np.amax(s, 1)[:, None])
    return (e @ V) / e.sum(1)[:, None]
