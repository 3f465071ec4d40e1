import numpy as np


def scaled_dot_product_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The output softmax(Q Kᵀ / √d_k) V, (…, T, d_v), and the weights, (…, T, S). mask: True = visible.

    返回输出 softmax(Q Kᵀ / √d_k) V（…, T, d_v）和权重（…, T, S）。mask：True 表示可以看。
    """
    raise NotImplementedError
