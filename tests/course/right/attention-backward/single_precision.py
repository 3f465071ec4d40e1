import numpy as np


def attention_backward(Q, K, V, dO):
    Q, K, V, dO = (array.astype(np.float32) for array in (Q, K, V, dO))
    scale = np.float32(Q.shape[1] ** -0.5)
    scores = scale * (Q @ K.T)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    P = e / e.sum(axis=1, keepdims=True)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(axis=1, keepdims=True)) * scale
    return dS @ K, dS.T @ Q, P.T @ dO
