import numpy as np


def layer_norm(x, gamma, beta):
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) + beta


def self_attention(x, p):
    Q, K, V = x @ p["W_q"], x @ p["W_k"], x @ p["W_v"]
    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V @ p["W_o"]


def feed_forward(x, p):
    return np.maximum(x @ p["W_1"] + p["b_1"], 0) @ p["W_2"] + p["b_2"]


def block(x, p):
    residual = x
    x = layer_norm(x, p["gamma_1"], p["beta_1"])
    x = residual + self_attention(x, p)
    residual = x
    x = layer_norm(x, p["gamma_2"], p["beta_2"])
    return residual + feed_forward(x, p)
