import numpy as np


def scaled_dot_product_attention(
    Q: np.ndarray, K: np.ndarray, V: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    # Only the last two axes are swapped: the others are batch and heads. 只交换最后两个轴，其余是批次和头。
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])  # … T S
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)  # exp(-inf) is exactly 0
    largest = scores.max(axis=-1, keepdims=True)
    # A fully masked row is all -inf, and -inf - -inf would be NaN. 整行都被屏蔽时，-inf - -inf 会是 NaN。
    largest = np.where(np.isinf(largest), 0, largest)
    powers = np.exp(scores - largest)
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)  # 0 / 1 for a row that sees nothing
    return weights @ V, weights
