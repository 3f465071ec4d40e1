import numpy as np


def softmax(x):
    x = np.exp(x - np.max(x, axis=1)[:, None])
    return x / np.sum(x, axis=1)[:, None]


def additive_attention(queries, keys, values, W_q, W_k, v):
    q = np.einsum("td,da->ta", queries, W_q)
    k = np.einsum("sd,da->sa", keys, W_k)
    hidden = np.tanh(np.expand_dims(q, 1) + np.expand_dims(k, 0))
    weights = softmax(np.einsum("tsa,a->ts", hidden, v))
    return np.einsum("ts,sv->tv", weights, values), weights
