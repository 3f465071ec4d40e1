import numpy as np


def encode(ids, embedding, W_q, W_k, W_v):
    out = np.zeros((*ids.shape, W_v.shape[1]))
    for b, sentence in enumerate(ids):
        real = embedding[sentence[sentence != 0]]
        for t, token in enumerate(sentence):
            scores = (real @ W_k) @ (embedding[token] @ W_q) / np.sqrt(W_q.shape[1])
            e = np.exp(scores - scores.max())
            out[b, t] = e / e.sum() @ (real @ W_v)
    return out
