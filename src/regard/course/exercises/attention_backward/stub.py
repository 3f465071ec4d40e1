import numpy as np


def attention_backward(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, dO: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of Q, K and V, given dO, the gradient of the output O = softmax(Q Kᵀ / √d_k) V.

    已知输出 O = softmax(Q Kᵀ / √d_k) V 的梯度 dO，求 Q、K、V 的梯度。
    """
    # Q (T, d_k), K (S, d_k), V (S, d_v), dO (T, d_v) -> dQ, dK, dV, each shaped as what it belongs to
    raise NotImplementedError
