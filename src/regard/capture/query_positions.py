"""Positions: at which token the queries of each watched call start, with and without a key/value cache."""

import torch
from torch import Tensor

from regard.records import Kind

HIDING = 9000.0
"""Scores this far below the best of their row are masked: the smallest offset that models mask with is -10,000."""


class Positions:
    """Positions over the calls of one model, in order.

    >>> positions = Positions()
    >>> positions.first("decoder", 4, 4), positions.first("decoder", 1, 5), positions.first("cross", 1, 9)
    (0, 4, 4)
    """

    def __init__(self) -> None:
        self._latest: tuple[int, int | None] = (0, 0)

    def first(
        self, kind: Kind, T: int, S: int, mask_or_scores: Tensor | None = None, masked: bool = True
    ) -> int | None:
        """The position of the first of T queries over S keys; None if unknown.

        The queries of a decoder are at the end of its keys, unless `mask_or_scores` shows unused positions there.
        Cross-attention follows the decoder's self-attention, and has the same positions.
        """
        if kind == "encoder":
            return 0
        if kind == "cross":
            return self._latest[1] if self._latest[0] == T else 0
        first: int | None = S - T
        if T >= S or (kind == "self" and T > 1 and not masked):
            first = 0
        elif mask_or_scores is not None and not sees_last(mask_or_scores):
            first = None
        self._latest = T, first
        return first


def sees_last(mask_or_scores: Tensor) -> bool:
    """Whether the last query sees the last key, by a mask or by scores (…, T, S)."""
    row = mask_or_scores[..., -1, :]
    if mask_or_scores.dtype == torch.bool:
        return bool(row[..., -1].any())
    return bool((row[..., -1] > row.amax(-1) - HIDING).any())
