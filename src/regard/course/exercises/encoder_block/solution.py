import numpy as np

Weights = dict[str, np.ndarray]


def linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def layer_norm(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    normal = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return weights[f"{name}.weight"] * normal + weights[f"{name}.bias"]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray | None) -> np.ndarray:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    B, T, d_model = x.shape
    return x.reshape(B, T, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)  # (B, n_heads, T, d_head)


def self_attention(x: np.ndarray, weights: Weights, n_heads: int, visible: np.ndarray | None) -> np.ndarray:
    q = split_heads(linear(x, weights, "self_attention.q_proj"), n_heads)
    k = split_heads(linear(x, weights, "self_attention.k_proj"), n_heads)
    v = split_heads(linear(x, weights, "self_attention.v_proj"), n_heads)
    heads = attention(q, k, v, visible)
    merged = heads.transpose(0, 2, 1, 3).reshape(x.shape)
    return linear(merged, weights, "self_attention.o_proj")


def feed_forward(x: np.ndarray, weights: Weights) -> np.ndarray:
    hidden = np.maximum(linear(x, weights, "feed_forward.up"), 0)
    return linear(hidden, weights, "feed_forward.down")


def encoder_block(x: np.ndarray, weights: Weights, n_heads: int, mask: np.ndarray | None = None) -> np.ndarray:
    visible = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, T): hides keys
    normed = layer_norm(x, weights, "self_attention_norm")
    x = x + self_attention(normed, weights, n_heads, visible)
    normed = layer_norm(x, weights, "feed_forward_norm")
    return x + feed_forward(normed, weights)
