"""Span: the columns of a text that one pass of a stack reads, and what there is for them to look at.

A stack is given a Span and need not know whether it reads a text at once, goes on where a cache ends, or both.
`whole` is a text without a past; `GrowingPast` and `StaticPast` remember one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.config.inputs import check_raw_mask
from regard.layers.cache import UNCACHED, Growing, LayerCache, Place, Static, in_place
from regard.masks import Mask

Allowed = Callable[[int | None], Mask | None]
"""Who may look where, given a layer's window."""


@dataclass(frozen=True, slots=True)
class Span:
    """T columns and their surroundings.

    positions   where the tokens stand in their text, (T,) or (B, T); padding before a text does not count
    keys        where the keys stand, (S,) or (B, S)
    allowed     who may look where, given a layer's window
    caches      of each layer's self-attention
    """

    positions: Tensor
    keys: Tensor
    allowed: Allowed
    caches: Sequence[LayerCache]


def whole(x: Tensor, n_layers: int, *, causal: bool, mask: Any = None, positions: Tensor | None = None) -> Span:
    """All of x (B, T, D) at once, without a past. `mask` takes away from what the stack itself allows."""
    positions = torch.arange(x.shape[1], device=x.device) if positions is None else positions
    if mask is not None and not isinstance(mask, Mask):
        check_raw_mask(tuple(mask.shape), *x.shape[:2])
    return Span(
        positions=positions,
        keys=positions,
        allowed=lambda window: _both(_band(window, causal), None if mask is None else Mask.of(mask)),
        caches=[UNCACHED] * n_layers,
    )


class GrowingPast:
    """A decoder's past of any length.

    padding   how many columns before each text are padding, (B, 1); None while there is none
    """

    def __init__(self, n_layers: int) -> None:
        self.padding: Tensor | None = None
        self._caches = [Growing() for _ in range(n_layers)]
        self._length = 0

    def span(self, ids: Tensor) -> Span:
        """The next T columns."""
        T, start = ids.shape[1], self._length
        self._length += T
        keys = torch.arange(self._length, device=ids.device)
        seen = None if self.padding is None else Mask.from_keep(keys >= self.padding)

        def allowed(window: int | None) -> Mask | None:
            # One query sees every key so far: no mask is quicker than one that hides nothing.
            band = None if T == 1 and window is None else _band(window, causal=True)
            return _both(band, seen)

        places = _counted(keys, self.padding)
        return Span(positions=places[..., start:], keys=places, allowed=allowed, caches=self._caches)

    def select(self, rows: Tensor) -> None:
        """The samples in this order, repeated or dropped."""
        for cache in self._caches:
            cache.select(rows)
        self.padding = None if self.padding is None else self.padding[rows]

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        for cache in self._caches:
            cache.crop(length)
        self._length = length


class StaticPast:
    """A decoder's past of at most `max_len` columns, in memory that never moves; how many there are is a tensor too.

    So every step is the same operations on the same addresses, which is what a compiled or captured step needs.

    padding   how many columns before each text are padding, (B, 1); None while there is none
    """

    def __init__(self, n_layers: int, max_len: int, device: torch.device) -> None:
        self.padding: Tensor | None = None
        self._max_len = max_len
        self._length = torch.zeros((), dtype=torch.long, device=device)
        self._place = Place(self._length)
        self._caches = [Static(self._place, max_len) for _ in range(n_layers)]

    def span(self, ids: Tensor) -> Span:
        """The next T columns."""
        columns = self._place.columns = self._length + torch.arange(ids.shape[1], device=ids.device)
        self._length += ids.shape[1]
        keys = torch.arange(self._max_len, device=ids.device)
        padding = self.padding

        def allowed(window: int | None) -> Mask:
            seen = keys <= columns[:, None]  # T S
            if window is not None:
                seen = seen & (keys > columns[:, None] - window)
            return Mask.of(seen if padding is None else seen & (keys >= padding)[:, None, None])

        return Span(
            positions=_counted(columns, padding), keys=_counted(keys, padding), allowed=allowed, caches=self._caches
        )

    def select(self, rows: Tensor) -> None:
        """The samples in this order; where there are as many as before, in the same memory."""
        for cache in self._caches:
            cache.select(rows)
        self.padding = None if self.padding is None else in_place(self.padding, rows)

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        self._length.fill_(length)


Past = GrowingPast | StaticPast


def _band(window: int | None, causal: bool) -> Mask | None:
    """What a stack allows by itself: no future, and nothing further than the window."""
    side = None if window is None else window - 1
    if causal:
        return Mask.window(side, 0)
    return None if side is None else Mask.window(side, side)


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    return other if one is None else one if other is None else one & other


def _counted(columns: Tensor, padding: Tensor | None) -> Tensor:
    """The positions of columns, (T,) or (B, T). Padding gets 0, and nobody sees it."""
    return columns if padding is None else (columns - padding).clamp(min=0)
