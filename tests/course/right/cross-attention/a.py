import numpy as np


def attention(q, k, v):
    scores = np.dot(q, k.T) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.dot(e / e.sum(axis=1, keepdims=True), v)


def cross_attention(x, memory, W_q, W_k, W_v):
    return attention(x @ W_q, memory @ W_k, memory @ W_v)
