import numpy as np


def grouped_query_attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Attention in which H / G neighbouring query heads share one key/value head.

    注意力，其中每 H / G 个相邻的查询头共用一个键值头。
    """
    # Q (H, T, d_k), K (G, S, d_k), V (G, S, d_v), H a multiple of G -> (H, T, d_v)
    raise NotImplementedError
