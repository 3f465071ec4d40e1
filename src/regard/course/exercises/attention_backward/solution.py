import numpy as np


def attention_backward(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, dO: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scale = 1 / np.sqrt(Q.shape[-1])
    scores = Q @ K.T * scale  # (T, S)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)

    dV = weights.T @ dO
    d_weights = dO @ V.T  # (T, S)
    passed = (weights * d_weights).sum(axis=-1, keepdims=True)  # what a row's softmax shares out
    d_scores = weights * (d_weights - passed)
    dQ = scale * d_scores @ K
    dK = scale * d_scores.T @ Q
    return dQ, dK, dV
