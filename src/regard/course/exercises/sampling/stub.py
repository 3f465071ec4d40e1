import numpy as np


def next_probabilities(
    logits: np.ndarray, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> np.ndarray:
    """The probability of drawing each token, (V,), from its logits (V,).

    由 logits (V,) 得到抽到每个词元的概率 (V,)。
    """
    raise NotImplementedError


def pick(probabilities: np.ndarray, u: float) -> int:
    """The token that a uniform random number u, 0 ≤ u < 1, chooses.

    均匀随机数 u（0 ≤ u < 1）选中的词元。
    """
    raise NotImplementedError
