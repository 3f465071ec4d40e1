"""A pre-norm block, as GPT-2 and Llama have them (one head, no mask). It contains one mistake.

GPT-2、Llama 里的那种 pre-norm 块（一个头，没有掩码）。这里面有错误。
"""

import numpy as np

Parameters = dict[str, np.ndarray]


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return gamma * centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) + beta


def self_attention(x: np.ndarray, p: Parameters) -> np.ndarray:
    Q, K, V = x @ p["W_q"], x @ p["W_k"], x @ p["W_v"]
    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V @ p["W_o"]


def feed_forward(x: np.ndarray, p: Parameters) -> np.ndarray:
    return np.maximum(x @ p["W_1"] + p["b_1"], 0) @ p["W_2"] + p["b_2"]


def block(x: np.ndarray, p: Parameters) -> np.ndarray:
    """One pre-norm block, x (T, d_model) -> (T, d_model)."""
    x = layer_norm(x, p["gamma_1"], p["beta_1"])
    x = x + self_attention(x, p)
    x = layer_norm(x, p["gamma_2"], p["beta_2"])
    return x + feed_forward(x, p)
