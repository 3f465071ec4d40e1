import numpy as np


def compute_qkv(X, W_q, W_k, W_v):
    Q = np.dot(X, W_q)
    K = np.dot(X, W_k)
    V = np.dot(X, W_v)
    return Q, K, V


def softmax(rows):
    rows = np.exp(rows - np.max(rows, axis=1, keepdims=True))
    return rows / np.sum(rows, axis=1, keepdims=True)


def self_attention(Q, K, V):
    d_k = Q.shape[1]
    scores = np.matmul(Q, K.T) / np.sqrt(d_k)
    attention_weights = softmax(scores)
    return np.matmul(attention_weights, V)
