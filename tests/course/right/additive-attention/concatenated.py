import numpy as np


def additive_attention(Q, K, V, W_q, W_k, v):
    # v · tanh([q; k] W), with the two matrices on top of each other
    T, S = len(Q), len(K)
    both = np.concatenate([np.repeat(Q, S, axis=0), np.tile(K, (T, 1))], axis=1)
    scores = (np.tanh(both @ np.vstack([W_q, W_k])) @ v).reshape(T, S)
    log_sum = np.logaddexp.reduce(scores, axis=1, keepdims=True)
    weights = np.exp(scores - log_sum)
    return weights @ V, weights
