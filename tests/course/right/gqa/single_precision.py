import numpy as np


def grouped_query_attention(Q, K, V):
    H, T, d_k = Q.shape
    q, k, v = (array.astype(np.float32) for array in (Q.reshape(len(K), -1, T, d_k), K, V))
    scores = np.einsum("grtd,gsd->grts", q, k) / np.float32(d_k**0.5)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("grts,gsv->grtv", e / e.sum(-1, keepdims=True), v).reshape(H, T, -1)
