"""Where in its text a call's first query stands, so that edges mean the same with a cache and without."""

import torch
from torch import Tensor

from regard.records import Kind

HIDING = 9000.0
"""Scores so far below the best of their row are hidden ones: the mildest that models hide with is -10,000."""


class Positions:
    """Is told every call of one model, in order.

    >>> positions = Positions()
    >>> positions.first("decoder", 4, 4), positions.first("decoder", 1, 5), positions.first("cross", 1, 9)
    (0, 4, 4)
    """

    def __init__(self) -> None:
        self._latest: tuple[int, int | None] = (0, 0)

    def first(self, kind: Kind, T: int, S: int, hiding: Tensor | None = None, masked: bool = True) -> int | None:
        """The position of the first of T queries that look at S keys; None where it cannot be told.

        The queries of a decoder stand at the end of its keys, as long as `hiding` (a mask, or scores) shows no empty
        room there. Cross-attention has nothing to count, but comes after the decoder's own.
        """
        if kind == "encoder":
            return 0
        if kind == "cross":
            return self._latest[1] if self._latest[0] == T else 0
        first: int | None = S - T
        if T >= S or (kind == "self" and T > 1 and not masked):
            first = 0
        elif hiding is not None and not sees_last(hiding):
            first = None
        self._latest = T, first
        return first


def sees_last(hiding: Tensor) -> bool:
    """Whether the last query may look at the last key, by a mask or by scores (…, T, S)."""
    row = hiding[..., -1, :]
    if hiding.dtype == torch.bool:
        return bool(row[..., -1].any())
    return bool((row[..., -1] > row.amax(-1) - HIDING).any())
