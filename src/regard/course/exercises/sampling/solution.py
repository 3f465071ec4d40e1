import numpy as np


def next_probabilities(
    logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    scores = logits / temperature
    powers = np.exp(scores - scores.max())
    order = np.argsort(-scores)  # the most likely first 概率大的在前
    descending = (powers / powers.sum())[order]
    if top_k is not None:
        descending[top_k:] = 0
        descending = descending / descending.sum()
    if top_p is not None:
        # The token that reaches top_p is kept: only what comes before it counts. 达到 top_p 的那个词元也保留。
        before = np.cumsum(descending) - descending
        descending[before >= top_p] = 0
        descending = descending / descending.sum()
    probabilities = np.empty_like(descending)
    probabilities[order] = descending  # back to the order of the vocabulary 换回词表的顺序
    return probabilities


def pick(probabilities: np.ndarray, u: float) -> int:
    # Token i has the part of [0, 1) between ends[i - 1] and ends[i]. 词元 i 占 ends[i - 1] 到 ends[i] 这一段。
    ends = np.cumsum(probabilities)
    return int(np.searchsorted(ends, u, side="right"))
