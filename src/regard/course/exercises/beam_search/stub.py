import numpy as np


def beam_search(log_probs: np.ndarray, start: int, eos: int, beams: int, max_len: int) -> tuple[list[int], float]:
    """The best sequence that a search with that many beams finds, and its log-probability.

    用给定数量的束搜索，返回找到的最佳序列和它的对数概率。
    """
    # log_probs (V, V): log_probs[a, b] = log P(next is b | now a) -> tokens with start in front, score
    raise NotImplementedError
