import numpy as np


def additive_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, W_q: np.ndarray, W_k: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Attention with the scores v · tanh(q W_q + k W_k): the context of each query, and the weights.

    得分为 v · tanh(q W_q + k W_k) 的注意力：返回每个查询的上下文，以及权重。
    """
    # Q (T, d_q), K (S, d_k), V (S, d_v), W_q (d_q, d_a), W_k (d_k, d_a), v (d_a,) -> (T, d_v), (T, S)
    raise NotImplementedError
