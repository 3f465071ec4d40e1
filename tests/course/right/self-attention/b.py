import math

import numpy as np


def compute_qkv(X, W_q, W_k, W_v):
    return [np.einsum("td,dk->tk", X, W) for W in (W_q, W_k, W_v)]


def self_attention(Q, K, V):
    T, d_k = Q.shape
    out = np.zeros((T, V.shape[1]))
    for t in range(T):
        scores = [float(np.dot(Q[t], K[s])) / math.sqrt(d_k) for s in range(T)]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        for s in range(T):
            out[t] += powers[s] / sum(powers) * V[s]
    return out
