import numpy as np

Cache = tuple[np.ndarray, np.ndarray]


def attend_with_cache(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, cache: Cache | None = None
) -> tuple[np.ndarray, Cache]:
    """Causal attention of T new positions over all positions so far; also the cache with the new keys and values.

    T 个新位置对目前为止所有位置做因果注意力；同时返回加上了新的键和值的缓存。
    """
    # q (T, d_k), k (T, d_k), v (T, d_v), cache: None or (K, V) of the P positions before
    # -> out (T, d_v), (K (P + T, d_k), V (P + T, d_v))
    raise NotImplementedError
