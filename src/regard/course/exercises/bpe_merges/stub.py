def learn_merges(words: dict[str, int], n_merges: int) -> list[tuple[str, str]]:
    """The first n_merges merges of byte-pair encoding, in the order in which they are learned.

    字节对编码学到的前 n_merges 次合并，按学到的顺序排列。
    """
    # words: how often each word occurs, {"low": 5, "lower": 2} -> [("l", "o"), ("lo", "w")]
    raise NotImplementedError
