"""Padding: which positions of each sample are text. Padding counts in no statistic, as a query or as the first key.

So a text in a padded batch gives the same numbers as the text alone. This module handles arrays only; `masks.padding`
and `capture.padding` infer padding from masks and ids.
"""

from typing import NamedTuple

import numpy as np

from regard.arrays import Array, is_tensor


class Padding(NamedTuple):
    """True for text, False for padding; None where all of it is text.

    queries  B T
    keys     B S
    """

    queries: Array | None = None
    keys: Array | None = None

    def first_keys(self) -> Array | None:
        """The first key of each text, B, 0 where there is none; None where all keys are text.

        >>> Padding(keys=np.array([[False, True, True], [True, True, False]])).first_keys().tolist()
        [1, 0]
        """
        if self.keys is None or not self.keys.shape[-1]:
            return None
        return (self.keys * 1).argmax(-1)  # torch has no argmax of booleans

    def offsets(self, T: int, S: int) -> Array | None:
        """The key at the position of query 0 of each text, B, if its last query is aligned with its last key.

        None where that is S − T for all of them, because no padding is known.

        >>> Padding(keys=np.array([[True, True, False], [True, True, True]])).offsets(1, 3).tolist()
        [1, 2]
        """
        if self.queries is None and self.keys is None:
            return None
        keys_end = S if self.keys is None else ends(self.keys)
        queries_end = T if self.queries is None else ends(self.queries)
        return keys_end - queries_end


def ends(text: Array) -> Array:
    """One past the last True of each row, B; 0 for a row without any.

    >>> ends(np.array([[True, False, True, False], [False] * 4])).tolist()
    [3, 0]
    """
    length = text.shape[-1]
    if is_tensor(text):
        import torch

        places = torch.arange(1, length + 1, device=text.device)
        return (text * places).amax(-1) if length else text.new_zeros(text.shape[:-1], dtype=torch.int64)
    return (text * np.arange(1, length + 1)).max(-1, initial=0)


def without_rows(x: Array, rows: Array | None, value: float, axes: int = 0) -> Array:
    """`x`, B H T and `axes` more axes, with `value` where `rows`, B T, is False; `x` itself where `rows` is None.

    >>> without_rows(np.ones((1, 1, 2)), np.array([[True, False]]), 0.0).tolist()
    [[[1.0, 0.0]]]
    """
    if rows is None:
        return x
    kept = rows[(slice(None), None, slice(None), *(None,) * axes)]
    if is_tensor(x):
        return x.masked_fill(~kept, value)
    return np.where(kept, x, np.asarray(value, x.dtype))
