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


def encoder_block(x: np.ndarray, weights: Weights, n_heads: int, mask: np.ndarray | None = None) -> np.ndarray:
    """One pre-norm encoder block: x + self-attention of the normed x, then x + feed-forward of the normed x.

    一个 pre-norm 编码器块：x + 归一化后的 x 的自注意力，再 x + 归一化后的 x 的前馈。
    """
    # x (B, T, d_model), weights by name, mask (B, T), True = token, or None -> (B, T, d_model)
    raise NotImplementedError
