import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    """The heads never leave the middle axis: (T, H, E)."""
    T, D = Q.shape
    if D % n_heads:
        raise ValueError("n_heads must divide the width")
    q, k, v = (x.reshape(T, n_heads, -1) for x in (Q, K, V))
    scores = np.einsum("the,she->ths", q, k) / np.sqrt(D / n_heads)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("ths,she->the", weights, v).reshape(T, D)
