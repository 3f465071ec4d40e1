import numpy as np


def grouped_query_attention(Q, K, V):
    H, T, E = Q.shape
    G = K.shape[0]
    q = Q.reshape(G, H // G, T, E)
    s = np.einsum("grte,gse->grts", q, K) / E**0.5
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1, keepdims=True)
    return np.einsum("grts,gsv->grtv", s, V).reshape(H, T, -1)
