import numpy as np

PAD = 0


def padding_mask(ids):
    return (ids != PAD).astype(float)


def attention(Q, K, V, mask):
    scores = Q @ K.transpose(0, 2, 1) / np.sqrt(K.shape[2])
    e = np.exp(scores - scores.max(-1, keepdims=True)) * mask[:, None]
    return e @ V / e.sum(-1, keepdims=True)


def encode(ids, embedding, W_q, W_k, W_v):
    x = embedding[ids]
    return attention(x @ W_q, x @ W_k, x @ W_v, padding_mask(ids))
