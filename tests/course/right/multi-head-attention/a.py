import numpy as np


def self_attention(Q, K, V):
    scores = np.dot(Q, K.T) / np.sqrt(Q.shape[1])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.dot(e / e.sum(axis=1, keepdims=True), V)


def multi_head_attention(Q, K, V, n_heads):
    d_model = Q.shape[1]
    assert d_model % n_heads == 0
    d_k = d_model // n_heads
    outputs = []
    for i in range(n_heads):
        columns = slice(i * d_k, (i + 1) * d_k)
        outputs.append(self_attention(Q[:, columns], K[:, columns], V[:, columns]))
    return np.concatenate(outputs, axis=-1)
