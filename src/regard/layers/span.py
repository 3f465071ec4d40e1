"""Span: the columns of a text that one pass of a stack reads, and what there is for them to look at.

A stack is given a Span and need not know whether it reads a text at once, goes on where a cache ends, or both.
`whole` is a text without a past; `GrowingPast` and `StaticPast` remember one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.layers.cache import UNCACHED, Growing, Kept, LayerCache, Static
from regard.masks import Mask

Rule = Callable[[int | None], Mask | None]
"""Who may look where, given a layer's window."""


@dataclass(frozen=True, slots=True)
class Span:
    """T columns and their surroundings.

    positions   where the tokens stand in their text, (T,) or (B, T); padding before a text does not count
    columns     where they stand beside the keys, (T,) or (B, T)
    keys        where the keys stand, (S,) or (B, S); what biases scores by distance compares the two
    rule        who may look where, given a layer's window
    own         the layers' caches of their own keys and values
    memory      the layers' caches of the encoder's
    """

    positions: Tensor
    columns: Tensor
    keys: Tensor
    rule: Rule
    own: Sequence[LayerCache]
    memory: Sequence[LayerCache]


def whole(x: Tensor, n_layers: int, *, causal: bool, mask: Any = None, positions: Tensor | None = None) -> Span:
    """All of x (B, T, D) at once, without a past. `mask` takes away from what the stack itself allows."""
    positions = torch.arange(x.shape[1], device=x.device) if positions is None else positions
    return Span(
        positions=positions,
        columns=positions,
        keys=positions,
        rule=lambda window: _joined(_band(window, causal), None if mask is None else Mask.of(mask)),
        own=[UNCACHED] * n_layers,
        memory=[UNCACHED] * n_layers,
    )


class GrowingPast:
    """A decoder's past of any length: what its layers remember, and which columns are padding."""

    def __init__(self, n_layers: int) -> None:
        self.own = [Growing() for _ in range(n_layers)]
        self.memory = [Kept() for _ in range(n_layers)]
        self._length = 0
        self._keep: Tensor | None = None  # B, columns; None while nothing is padding

    def span(self, ids: Tensor, keep: Tensor | None) -> Span:
        """The next T columns; `keep` (B, T) is False for padding."""
        B, T = ids.shape[:2]
        start, stop = self._length, self._length + T
        if keep is not None or self._keep is not None:
            before = torch.ones(B, start, dtype=torch.bool, device=ids.device) if self._keep is None else self._keep
            newest = torch.ones(B, T, dtype=torch.bool, device=ids.device) if keep is None else keep
            self._keep = torch.cat([before, newest], dim=1)
        self._length = stop
        kept = self._keep
        keys = torch.arange(stop, device=ids.device)

        def rule(window: int | None) -> Mask | None:
            # One query sees every key so far: no mask is quicker than one that hides nothing.
            band = None if T == 1 and window is None else _band(window, causal=True)
            return _joined(band, None if kept is None else Mask.from_keep(kept))

        return Span(
            positions=keys[start:] if kept is None else _counted(kept)[:, start:],
            columns=keys[start:],
            keys=keys,
            rule=rule,
            own=self.own,
            memory=self.memory,
        )

    def select(self, rows: Tensor) -> None:
        """The samples in this order, repeated or dropped."""
        for own, memory in zip(self.own, self.memory, strict=True):
            own.select(rows)
            memory.select(rows)
        self._keep = None if self._keep is None else self._keep[rows]

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        for cache in self.own:
            cache.crop(length)
        self._length = length
        self._keep = None if self._keep is None else self._keep[:, :length]


class StaticPast:
    """A decoder's past of at most `max_len` columns, in memory that never moves; how many there are is a tensor too.

    So every step is the same operations on the same addresses, which is what a compiled or captured step needs.
    """

    def __init__(self, n_layers: int, max_len: int) -> None:
        self.own = [Static(lambda: self._columns, max_len) for _ in range(n_layers)]
        self.memory = [Kept() for _ in range(n_layers)]
        self._max_len = max_len
        self._columns: Tensor
        self._start: Tensor | None = None  # how many columns are read
        self._keep: Tensor | None = None  # B, max_len; None while nothing is padding

    def span(self, ids: Tensor, keep: Tensor | None) -> Span:
        """The next T columns; `keep` (B, T) is False for padding."""
        B, T = ids.shape[:2]
        if self._start is None:
            self._start = torch.zeros((), dtype=torch.long, device=ids.device)
        columns = self._columns = self._start + torch.arange(T, device=ids.device)
        self._start += T
        if keep is not None:
            if self._keep is None:
                self._keep = torch.ones(B, self._max_len, dtype=torch.bool, device=ids.device)
            self._keep.index_copy_(1, columns, keep)
        kept = self._keep
        keys = torch.arange(self._max_len, device=ids.device)

        def rule(window: int | None) -> Mask:
            seen = keys <= columns[:, None]  # T S
            if window is not None:
                seen = seen & (keys > columns[:, None] - window)
            return Mask.of(seen if kept is None else seen & kept[:, None, None])

        return Span(
            positions=columns if kept is None else _counted(kept).index_select(1, columns),
            columns=columns,
            keys=keys,
            rule=rule,
            own=self.own,
            memory=self.memory,
        )

    def select(self, rows: Tensor) -> None:
        """The samples in this order; where there are as many as before, in the same memory."""
        for own, memory in zip(self.own, self.memory, strict=True):
            own.select(rows)
            memory.select(rows)
        if self._keep is not None:
            self._keep = self._keep.copy_(self._keep[rows]) if len(rows) == len(self._keep) else self._keep[rows]

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        if self._start is not None:
            self._start.fill_(length)
        if self._keep is not None:
            self._keep[:, length:] = True


Past = GrowingPast | StaticPast


def _band(window: int | None, causal: bool) -> Mask | None:
    """What a stack allows by itself: no future, and nothing further than the window."""
    side = None if window is None else window - 1
    if causal:
        return Mask.window(side, 0)
    return None if side is None else Mask.window(side, side)


def _joined(one: Mask | None, other: Mask | None) -> Mask | None:
    return other if one is None else one if other is None else one & other


def _counted(keep: Tensor) -> Tensor:
    """The position of each column: how many kept ones are before it. Padding gets 0, and nobody sees it."""
    return (keep.long().cumsum(1) - 1).clamp(min=0)
