import numpy as np


def sentence_vectors(ids, embedding, W_q, W_k, W_v, n_heads):
    x, keep = embedding[ids], (ids != 0).astype(float)
    q, k, v = ((x @ W).reshape(*ids.shape, n_heads, -1) for W in (W_q, W_k, W_v))
    scores = np.einsum("bthe,bshe->bhts", q, k) / q.shape[-1] ** 0.5
    scores += np.where(keep > 0, 0.0, -np.inf)[:, None, None]
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    share = keep / keep.sum(1, keepdims=True)
    return np.einsum("bt,bhts,bshe->bhe", share, weights, v).reshape(len(ids), -1)
