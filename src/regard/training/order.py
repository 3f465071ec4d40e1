"""Order as a pure function of numbers: the same key gives the same permutation, on every machine and in every version.

NumPy promises that the raw numbers of PCG64 never change; what `Generator.permutation` makes of them it does not.
"""

import numpy as np


def noise(n: int, *key: int) -> np.ndarray:
    """`n` random 64-bit numbers that depend on nothing but the key, whose parts are at least 0.

    >>> noise(2, 7, 1).tolist() == noise(2, 7, 1).tolist() != noise(2, 7, 2).tolist()
    True
    """
    return np.asarray(np.random.PCG64(np.random.SeedSequence(key)).random_raw(n), dtype=np.uint64)


def permutation(n: int, *key: int) -> np.ndarray:
    """The numbers 0 … n - 1 in an order that depends on nothing but the key.

    >>> permutation(5, 0, 0).tolist()
    [3, 2, 1, 0, 4]
    """
    return np.argsort(noise(n, *key), kind="stable")
