import numpy as np


def simple_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    # 1, 2. The score of each query and key, divided by √d_k. 每个查询和每个键的得分，再除以 √d_k。
    scores = Q @ K.T / np.sqrt(K.shape[-1])  # T S
    # 3. Softmax along the keys: each row sums to 1. 沿着键做 softmax：每行之和是 1。
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    # 4. The values, mixed by these weights. 按权重混合各个值。
    return weights @ V  # T d_v
