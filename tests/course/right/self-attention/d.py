import numpy as np


class Attention:
    def __init__(self, d_k):
        self.root = np.float32(d_k) ** np.float32(0.5)

    def weights(self, Q, K):
        scores = (Q / self.root).astype(np.float32) @ K.astype(np.float32).T
        scores -= scores.max(1)[:, None]
        np.exp(scores, out=scores)
        return scores / scores.sum(1)[:, None]


def compute_qkv(X, W_q, W_k, W_v):
    def project(W):
        return (X[:, :, None] * W[None, :, :]).sum(axis=1)

    return project(W_q), project(W_k), project(W_v)


def self_attention(Q, K, V):
    return Attention(Q.shape[-1]).weights(Q, K) @ V
