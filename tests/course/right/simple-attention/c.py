import numpy as np


def simple_attention(Q, K, V):
    # keys in the rows until the very end
    scores = np.einsum("sd,td->st", K, Q) / Q.shape[1] ** 0.5
    w = np.exp(scores - scores.max(axis=0))
    w /= w.sum(axis=0)
    return np.einsum("st,sv->tv", w, V)
