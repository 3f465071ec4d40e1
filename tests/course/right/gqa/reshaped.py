import numpy as np


def grouped_query_attention(Q, K, V):
    H, T, d = Q.shape
    G = K.shape[0]
    grouped = Q.reshape(G, H // G, T, d)
    s = np.einsum("grtd,gsd->grts", grouped, K) / d**0.5
    p = np.exp(s - np.logaddexp.reduce(s, axis=-1, keepdims=True))
    return np.einsum("grts,gsv->grtv", p, V).reshape(H, T, -1)
