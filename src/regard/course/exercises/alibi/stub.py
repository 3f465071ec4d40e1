import numpy as np


def alibi_slopes(n_heads: int) -> np.ndarray:
    """One slope for each head, (n_heads,).

    每个头一个斜率，(n_heads,)。
    """
    raise NotImplementedError


def alibi_bias(n_heads: int, T: int, S: int) -> np.ndarray:
    """−slope · distance for each head, query and key, (n_heads, T, S); the queries are the last T of S positions.

    每个头、每个查询、每个键的 −斜率 · 距离，(n_heads, T, S)；查询是 S 个位置里的最后 T 个。
    """
    raise NotImplementedError
