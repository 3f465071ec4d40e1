import numpy as np


def online_softmax_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    top = np.full(len(Q), -np.inf)  # the largest score so far, one a query
    total = np.zeros(len(Q))  # the sum of exp(score - top) so far
    output = np.zeros((len(Q), V.shape[-1]))  # the sum of exp(score - top) · v so far
    for start in range(0, len(K), block):
        keys, values = K[start : start + block], V[start : start + block]
        scores = Q @ keys.T / np.sqrt(Q.shape[-1])  # (T, block)
        new_top = np.maximum(top, scores.max(axis=-1))
        rescale = np.exp(top - new_top)  # what was summed under the old top
        e = np.exp(scores - new_top[:, None])
        total = total * rescale + e.sum(axis=-1)
        output = output * rescale[:, None] + e @ values
        top = new_top
    return output / total[:, None], top + np.log(total)
