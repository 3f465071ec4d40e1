import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    # One matrix for all heads: the other heads' columns are blanked out of the queries.
    T, d_model = Q.shape
    head_of_column = np.arange(d_model) // (d_model // n_heads)
    own = head_of_column == np.arange(n_heads)[:, None]  # H D
    queries = (Q * own[:, None, :]).reshape(n_heads * T, d_model)
    scores = queries @ K.T / np.sqrt(d_model // n_heads)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    mixed = (weights @ V).reshape(n_heads, T, d_model)
    return np.where(own[:, None, :], mixed, 0).sum(axis=0)
