import numpy as np


def attend(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(scores - scores.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ v


def sentence_vectors(ids, embedding, W_q, W_k, W_v, n_heads):
    vectors = []
    for sentence in ids:
        x = embedding[sentence[sentence != 0]]  # padding cannot matter if it is not there
        heads = zip(*(np.split(x @ W, n_heads, axis=1) for W in (W_q, W_k, W_v)), strict=True)
        vectors.append(np.concatenate([attend(*head) for head in heads], axis=1).mean(axis=0))
    return np.array(vectors)
