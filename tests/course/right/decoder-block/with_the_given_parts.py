import numpy as np

Weights = dict[str, np.ndarray]


def linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """Given: x Wᵀ + b with the weights of that name, stored as in nn.Linear.

    已经写好：用这个名字的权重算 x Wᵀ + b，存放方式和 nn.Linear 一样。
    """
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def layer_norm(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    """Given: layer normalisation over the last axis, with the weights of that name.

    已经写好：沿最后一个轴的层归一化，用这个名字的权重。
    """
    normal = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return weights[f"{name}.weight"] * normal + weights[f"{name}.bias"]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray | None) -> np.ndarray:
    """Given: softmax(q kᵀ / √d_head) v; q (…, T, d_head), `visible` fits (…, T, S), True = visible, or is None.

    已经写好：softmax(q kᵀ / √d_head) v；q 是 (…, T, d_head)，`visible` 要能配上 (…, T, S)，True 表示可见，可以是 None。
    """
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def heads_of(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=2), axis=1)


def sub_layer(x, keys, weights, name, n_heads, visible):
    q = heads_of(linear(x, weights, f"{name}.q_proj"), n_heads)
    k = heads_of(linear(keys, weights, f"{name}.k_proj"), n_heads)
    v = heads_of(linear(keys, weights, f"{name}.v_proj"), n_heads)
    out = attention(q, k, v, visible)
    return linear(np.concatenate([out[:, h] for h in range(n_heads)], axis=-1), weights, f"{name}.o_proj")


def decoder_block(x, memory, weights, n_heads, memory_mask=None):
    T = x.shape[1]
    past = np.arange(T)[:, None] >= np.arange(T)
    n = layer_norm(x, weights, "self_attention_norm")
    y = x + sub_layer(n, n, weights, "self_attention", n_heads, past)
    if memory_mask is not None:
        memory_mask = np.expand_dims(memory_mask, (1, 2))
    n = layer_norm(y, weights, "cross_attention_norm")
    z = y + sub_layer(n, memory, weights, "cross_attention", n_heads, memory_mask)
    h = linear(layer_norm(z, weights, "feed_forward_norm"), weights, "feed_forward.up")
    return z + linear(np.where(h > 0, h, 0), weights, "feed_forward.down")
