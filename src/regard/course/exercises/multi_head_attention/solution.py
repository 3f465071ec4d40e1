import numpy as np


def multi_head_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, n_heads: int) -> np.ndarray:
    T, d_model = Q.shape
    d_head = d_model // n_heads

    def split(x: np.ndarray) -> np.ndarray:
        # Columns h·d_head … (h+1)·d_head belong to head h. 第 h·d_head … (h+1)·d_head 列归第 h 个头。
        return x.reshape(T, n_heads, d_head).transpose(1, 0, 2)  # H T E

    q, k, v = split(Q), split(K), split(V)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(d_head)  # H T T
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    heads = weights @ v  # H T E
    # Concatenate the heads in order. 再按顺序拼接各个头。
    return heads.transpose(1, 0, 2).reshape(T, d_model)
