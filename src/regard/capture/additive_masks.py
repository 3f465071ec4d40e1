"""Additive masks recognised as mask rules: a number per query and key becomes causal, a window, padding.

An additive mask is T × S, is made anew for every layer, and must not be kept. Most are kept keys within a band around
the query. That is recognised from what each row sees (the number of keys, the first, the last) and from the keys that
any row sees, read block by block; nothing T × S is made. Other masks stay as they are.
"""

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.capture.captured import CapturedCall
from regard.kernels.tiles import row_blocks
from regard.masks import Mask
from regard.masks.rules import Band

BLOCK_SIZE = 2**18
"""The number of mask elements that are read together."""


class MaskRecognizer:
    """Converts additive masks to rules. A mask that several layers share is read once.

    `keep`: the mask will be kept, so an additive mask that is only a mask, but no known rule, becomes booleans, which
    take a quarter of the memory.
    """

    def __init__(self, keep: bool = False) -> None:
        self._keep = keep
        self._last: tuple[weakref.ref[Tensor], int, Mask | None] | None = None

    def with_mask(self, captured: CapturedCall) -> CapturedCall:
        """The same with `bias` as a mask, if it is only a mask; else with a bias without broadcast axes."""
        if captured.bias is None:
            return captured
        mask = self._mask(captured.bias, captured.q.shape[2], captured.k.shape[2])
        if mask is None:
            return captured._replace(bias=narrowed(captured.bias))
        if mask is ALL:
            return captured._replace(bias=None)
        return captured._replace(bias=None, mask=mask if captured.mask is None else captured.mask & mask)

    def _mask(self, added: Tensor, T: int, S: int) -> Mask | None:
        version = None if added.is_inference() else added._version  # changes of inference tensors are not counted
        if self._last is not None and self._last[0]() is added and self._last[1] == version:
            return self._last[2]
        mask = recognised(added, T, S)
        if mask is None and added.dtype == torch.bool:
            mask = Mask.of(narrowed(added))
        elif mask is None and self._keep and _visibility_of(narrowed(added)) is not None:
            mask = Mask.of(narrowed(added) == 0)
        self._last = None if version is None else (weakref.ref(added), version, mask)
        return mask


ALL = Mask(Band(None, None), "everything")
"""A mask in which all keys are visible."""


def recognised(added: Tensor, T: int, S: int) -> Mask | None:
    """The Mask equal to `added`, which broadcasts to B H T S; None if it is not kept keys within a band.

    0 or True is visible; -inf, the lowest number of the dtype, or False is masked.

    >>> recognised(torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])[None, None], 2, 2)
    Mask.causal()
    """
    added = narrowed(added)
    if not T or not S or added.shape[-1] not in (1, S) or added.shape[-2] not in (1, T):
        return None
    visible = _visibility_of(added.expand(-1, -1, -1, S))
    if visible is None or not visible.same_in_heads:
        return None
    keep = None if bool(visible.keep.all()) else Mask.from_keep(visible.keep[:, 0])
    if visible.count.shape[-1] == 1 or torch.equal(visible.within(None, None, visible.keep), visible.count):
        return ALL if keep is None else keep
    for ends in visible.ends(T):
        if torch.equal(visible.within(*ends, torch.ones_like(visible.keep)), visible.count):
            return _band(*ends, S - T)
        if keep is not None and torch.equal(visible.within(*ends, visible.keep), visible.count):
            return _band(*ends, S - T) & keep
    return None


def narrowed(added: Tensor) -> Tensor:
    """The same without broadcast axes: (1 or B) (1 or H) (1 or T) (1 or S)."""
    added = added[(None,) * (4 - added.dim())] if added.dim() < 4 else added
    for axis in range(added.dim()):
        if added.stride(axis) == 0 and added.shape[axis] > 1:
            added = added.narrow(axis, 0, 1)
    return added


@dataclass(frozen=True, slots=True)
class RowVisibility:
    """What the rows of a mask see: number of keys, first and last key, B H T; the keys that any row sees, B H S."""

    count: Tensor
    first: Tensor
    last: Tensor
    keep: Tensor

    @property
    def same_in_heads(self) -> bool:
        return all(bool((x == x[:, :1]).all()) for x in (self.count, self.first, self.last, self.keep))

    def ends(self, T: int) -> list[tuple[int | None, int | None]]:
        """How far to the left and right of key i the rows of query i see: None is unbounded.

        No row sees beyond these ends, by construction; comparing counts is then enough to show that it sees no less.
        """
        sees_any = self.count > 0
        here = torch.arange(T, device=self.count.device)
        left, right = (int(x[sees_any].max()) for x in (here - self.first, self.last - here))
        return [(None, right), (left, right), (left, None)]

    def within(self, left: int | None, right: int | None, keep: Tensor) -> Tensor:
        """The number of kept keys between these ends, for each row."""
        T, S = self.count.shape[-1], keep.shape[-1]
        here = torch.arange(T, device=keep.device)
        low = torch.zeros_like(here) if left is None else (here - left).clamp(0, S)
        high = torch.full_like(here, S) if right is None else (here + right + 1).clamp(0, S)
        counted = torch.nn.functional.pad(keep.cumsum(-1), (1, 0))  # B H S+1
        return (counted[..., high] - counted[..., low]).clamp(min=0)


def _band(left: int | None, right: int | None, offset: int) -> Mask:
    """A band counted from the first key, as one counted from the last where that is possible."""
    if left is None and right == offset:
        return Mask.causal()
    ends = (None if left is None else left + offset, None if right is None else right - offset)
    if all(end is None or end >= 0 for end in ends):
        return Mask.window(*ends)
    return Mask(Band(left, right, from_first=True), "band")


def _visibility_of(added: Tensor) -> RowVisibility | None:
    """What the rows see; None if the numbers are more than a mask."""
    B, H, T, S = added.shape
    lowest = None if added.dtype == torch.bool else torch.finfo(added.dtype).min
    keys = torch.arange(1, S + 1, dtype=torch.int32, device=added.device)
    keep = torch.zeros((B, H, S), dtype=torch.bool, device=added.device)
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for rows in row_blocks(0, T, max(1, BLOCK_SIZE // max(1, B * H * S))):
        block = added[:, :, rows]
        allowed = block if lowest is None else block == 0
        count = allowed.sum(-1, dtype=torch.int32)
        if lowest is not None:
            hidden = (block <= lowest).sum(-1, dtype=torch.int32)
            if not bool((count + hidden == S).all()):
                return None
            # A row that holds only the lowest number has equal scores, and sees everything.
            if bool((count == 0).any()) and bool((block.amax(-1) == lowest).any()):
                return None
        keep |= allowed.view(torch.uint8).amax(-2).bool()  # forty times as fast as `any`
        last = (allowed * keys).amax(-1) - 1
        first = S - (allowed * keys.flip(0)).amax(-1)
        found.append((count, first, last))
    count, first, last = (torch.cat(parts, dim=-1) for parts in zip(*found, strict=True))
    return RowVisibility(count=count, first=first, last=last, keep=keep)
