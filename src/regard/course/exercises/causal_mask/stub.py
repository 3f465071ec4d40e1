import numpy as np


def create_causal_mask(n: int) -> np.ndarray:
    """(n, n), to be added to the scores: 0 where position i may look at j, -inf where j comes later.

    (n, n)，用来加到得分上：位置 i 可以看 j 的地方是 0，j 在后面的地方是 -inf。
    """
    raise NotImplementedError
