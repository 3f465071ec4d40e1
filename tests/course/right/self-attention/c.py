import numpy as np


def compute_qkv(X, *weights):
    widths = np.cumsum([W.shape[1] for W in weights])[:-1]
    joined = X @ np.concatenate(weights, axis=1)
    return tuple(np.split(joined, widths, axis=1))


def self_attention(Q, K, V):
    scores = np.einsum("td,sd->ts", Q * Q.shape[-1] ** -0.5, K)
    log_weights = scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)
    return np.einsum("ts,sv->tv", np.exp(log_weights), V)
