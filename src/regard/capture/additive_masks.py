"""The mask that a model hands to its attention, a number to add for every query and key, recognised as rules.

Such a mask is T × S, made anew for every layer, and must not be kept. Most are kept keys within a band around the
query: causal, a window, padding. That is told from what each row sees (how many keys, the first, the last) and from
which keys anyone sees, read block by block; nothing T × S is made. What is neither stays what it was.
"""

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.capture.captured import Caught
from regard.kernels.tiles import row_blocks
from regard.masks import Mask
from regard.masks.rules import Band

AT_A_TIME = 2**18
"""Numbers of a mask that are looked at together."""


class Lowering:
    """Additive masks as rules. A mask that comes again, layer after layer, is looked at once.

    `keep`: who may look where will be kept, so what is only a mask, though none that has a name, becomes booleans: a
    quarter of the memory.
    """

    def __init__(self, keep: bool = False) -> None:
        self._keep = keep
        self._last: tuple[weakref.ref[Tensor], int, Mask | None] | None = None

    def lowered(self, caught: Caught) -> Caught:
        """The same with `bias` as a mask, where it is nothing more; else with a bias no larger than it must be."""
        if caught.bias is None:
            return caught
        mask = self._mask(caught.bias, caught.q.shape[2], caught.k.shape[2])
        if mask is None:
            return caught._replace(bias=narrowed(caught.bias))
        if mask is ALL:
            return caught._replace(bias=None)
        return caught._replace(bias=None, mask=mask if caught.mask is None else caught.mask & mask)

    def _mask(self, added: Tensor, T: int, S: int) -> Mask | None:
        version = None if added.is_inference() else added._version  # made in inference mode, changes are not counted
        if self._last is not None and self._last[0]() is added and self._last[1] == version:
            return self._last[2]
        mask = recognised(added, T, S)
        if mask is None and added.dtype == torch.bool:
            mask = Mask.of(narrowed(added))
        elif mask is None and self._keep and _rows_of(narrowed(added)) is not None:
            mask = Mask.of(narrowed(added) == 0)
        self._last = None if version is None else (weakref.ref(added), version, mask)
        return mask


ALL = Mask(Band(None, None), "everything")
"""A mask that hides nothing."""


def recognised(added: Tensor, T: int, S: int) -> Mask | None:
    """The Mask that `added`, which broadcasts to B H T S, is; None where it is not kept keys within a band.

    0, or True, is what may be looked at; -inf, the lowest number of the dtype, or False what may not.

    >>> recognised(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])[None, None], 2, 2)
    Mask.causal()
    """
    added = narrowed(added)
    if not T or not S or added.shape[-1] not in (1, S) or added.shape[-2] not in (1, T):
        return None
    seen = _rows_of(added.expand(-1, -1, -1, S))
    if seen is None or not seen.alike_in_heads:
        return None
    keep = None if bool(seen.keep.all()) else Mask.from_keep(seen.keep[:, 0])
    if seen.count.shape[-1] == 1 or torch.equal(seen.within(None, None, seen.keep), seen.count):
        return ALL if keep is None else keep
    for ends in seen.ends(T):
        if torch.equal(seen.within(*ends, torch.ones_like(seen.keep)), seen.count):
            return _band(*ends, S - T)
        if keep is not None and torch.equal(seen.within(*ends, seen.keep), seen.count):
            return _band(*ends, S - T) & keep
    return None


def narrowed(added: Tensor) -> Tensor:
    """The same without what was only repeated along an axis: (1 or B) (1 or H) (1 or T) (1 or S)."""
    added = added[(None,) * (4 - added.dim())] if added.dim() < 4 else added
    for axis in range(added.dim()):
        if added.stride(axis) == 0 and added.shape[axis] > 1:
            added = added.narrow(axis, 0, 1)
    return added


@dataclass(frozen=True, slots=True)
class Rows:
    """What the rows of a mask see: B H T, the first and last key and how many; B H S, the keys that anyone sees."""

    count: Tensor
    first: Tensor
    last: Tensor
    keep: Tensor

    @property
    def alike_in_heads(self) -> bool:
        return all(bool((x == x[:, :1]).all()) for x in (self.count, self.first, self.last, self.keep))

    def ends(self, T: int) -> list[tuple[int | None, int | None]]:
        """How far to the left and right of query i, counted from key i, these rows may see: None is without end.

        They see no more than that, by the making of it; so that they see no less, it is enough to count.
        """
        looking = self.count > 0
        here = torch.arange(T, device=self.count.device)
        left, right = (int(x[looking].max()) for x in (here - self.first, self.last - here))
        return [(None, right), (left, right), (left, None)]

    def within(self, left: int | None, right: int | None, keep: Tensor) -> Tensor:
        """How many of the kept keys lie between these ends, for each row."""
        T, S = self.count.shape[-1], keep.shape[-1]
        here = torch.arange(T, device=keep.device)
        low = torch.zeros_like(here) if left is None else (here - left).clamp(0, S)
        high = torch.full_like(here, S) if right is None else (here + right + 1).clamp(0, S)
        counted = torch.nn.functional.pad(keep.cumsum(-1), (1, 0))  # B H S+1
        return (counted[..., high] - counted[..., low]).clamp(min=0)


def _band(left: int | None, right: int | None, offset: int) -> Mask:
    """A band counted from the first key as one counted from the last, as people write it, where that can be said."""
    if left is None and right == offset:
        return Mask.causal()
    ends = (None if left is None else left + offset, None if right is None else right - offset)
    if all(end is None or end >= 0 for end in ends):
        return Mask.window(*ends)
    return Mask(Band(left, right, from_first=True), "band")


def _rows_of(added: Tensor) -> Rows | None:
    """What the rows see; None where the numbers are more than a mask."""
    B, H, T, S = added.shape
    lowest = None if added.dtype == torch.bool else torch.finfo(added.dtype).min
    keys = torch.arange(1, S + 1, dtype=torch.int32, device=added.device)
    keep = torch.zeros((B, H, S), dtype=torch.bool, device=added.device)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for rows in row_blocks(0, T, max(1, AT_A_TIME // max(1, B * H * S))):
        block = added[:, :, rows]
        allowed = block if lowest is None else block == 0
        count = allowed.sum(-1, dtype=torch.int32)
        if lowest is not None:
            hidden = (block <= lowest).sum(-1, dtype=torch.int32)
            if not bool((count + hidden == S).all()):
                return None
            # A row of nothing but the lowest number is a row of equals, which sees everything.
            if bool((count == 0).any()) and bool((block.amax(-1) == lowest).any()):
                return None
        keep |= allowed.view(torch.uint8).amax(-2).bool()  # forty times as fast as `any`
        last = (allowed * keys).amax(-1) - 1
        first = S - (allowed * keys.flip(0)).amax(-1)
        found.append((count, first, last))
    count, first, last = (torch.cat(parts, dim=-1) for parts in zip(*found, strict=True))
    return Rows(count=count, first=first, last=last, keep=keep)
