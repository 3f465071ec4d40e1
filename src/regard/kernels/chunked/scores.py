"""One block of scores in torch: the product, softcap, bias and mask.

A `Slab` is what is computed together: one head of one sample on the CPU, all of them on a GPU. Its tensors have
the same leading axes, none or (B, H), before positions and width.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor

from regard.kernels.tiles import COLUMNS_PER_QUESTION, block_of, head_of, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.masks.rules import Band, Frame


@dataclass(frozen=True, slots=True)
class Slab:
    """Queries already scaled, keys, values, and who may look where."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: BoundMask | None
    bias: Tensor | None
    softcap: float | None

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[-2]) if self.mask is None else self.mask.reach(rows)

    def blocks(self, most: int, of_bins: int | None = None) -> list[tuple[slice, int, int]]:
        """Rows to be computed at a time, at most so many and whole bins, each with the range of keys that they reach.

        Rows that reach no key are left out.
        """
        T, S = self.q.shape[-2], self.k.shape[-2]
        widest = S if self.mask is None else self.mask.widest(most)
        step = rows_per_block(T, widest * max(1, self.q.shape[:-2].numel()), most, of_bins)
        reached = ((rows, *self.reach(rows)) for rows in row_blocks(0, T, step))
        return [(rows, low, high) for rows, low, high in reached if low < high]

    def scores(self, rows: slice, low: int, high: int, out: Tensor | None = None) -> Tensor:
        """The scores of these rows and of the keys low … high, -inf where hidden."""
        scores = _products(self.q[..., rows, :], self.k[..., low:high, :], out)
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.bias is not None:
            scores.add_(block_of(self.bias, rows, slice(low, high)))
        if self.mask is not None:
            hide(scores, self.mask, rows, low, high, -torch.inf)
        return scores


def _products(q: Tensor, k: Tensor, out: Tensor | None) -> Tensor:
    """q kᵀ, where k may have fewer heads than q: those that share keys then stand below one another."""
    if q.dim() == 2 or q.shape[1] == k.shape[1]:
        return torch.matmul(q, k.mT, out=out)
    folded = q.unflatten(1, (k.shape[1], -1)).flatten(2, 3)  # B G (H/G · rows) E
    return torch.matmul(folded, k.mT).view(*q.shape[:-1], k.shape[-2])


def hide(scores: Tensor, mask: BoundMask, rows: slice, low: int, high: int, value: float) -> None:
    """Write `value` where the rows may not look."""
    if isinstance(mask.rule, Band):
        _hide_outside(scores, mask.rule, mask.frame, rows, low, high, value)
        return
    for tile, seen in mask.doubtful(rows, low, high, COLUMNS_PER_QUESTION):
        part = scores[..., tile.start - low : tile.stop - low]
        if seen is False:
            part.fill_(value)
        else:
            part.masked_fill_(~cast(Tensor, seen), value)


def _hide_outside(scores: Tensor, band: Band, frame: Frame, rows: slice, low: int, high: int, value: float) -> None:
    """The same for a band, whose edges look alike in every block of every head: they are made once."""
    start, stop = band.certain(frame, rows)
    for first, last in ((low, min(start, high)), (max(low, stop), high)) if start < stop else ((low, high),):
        if first < last:
            ahead = rows.start + band.offset(frame) - first
            hidden = _outside(band.left, band.right, ahead, scores.shape[-2], last - first, scores.device)
            scores[..., first - low : last - low].masked_fill_(hidden, value)


@lru_cache(maxsize=64)
def _outside(left: int | None, right: int | None, ahead: int, height: int, width: int, device: torch.device) -> Tensor:
    """What a band hides from `height` queries, the first of which stands `ahead` of the first of `width` keys."""
    queries = torch.arange(ahead, ahead + height, device=device)[:, None]
    keys = torch.arange(width, device=device)
    hidden = torch.zeros(height, width, dtype=torch.bool, device=device)
    if left is not None:
        hidden |= keys < queries - left
    return hidden if right is None else hidden | (keys > queries + right)


def exact_dtype(x: Tensor) -> torch.dtype:
    """What to compute in: float64 for float64, float32 for the rest."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def slabs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: BoundMask | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
) -> list[tuple[tuple[int, ...], "Slab"]]:
    """What is computed together, with its place among B H. In float32 at least; heads on the CPU one by one."""
    exact = exact_dtype(q)
    B, H = q.shape[:2]
    served = H // max(1, k.shape[1])
    # One layout, so that rounding does not depend on how the caller's memory lies.
    q, k, v = (x.to(exact).contiguous() for x in (q, k, v))
    q = q * scale
    bias = None if bias is None else bias.to(exact)
    if q.device.type != "cpu":
        k, v = (x if served == 1 else x.repeat_interleave(served, dim=1) for x in (k, v))
        return [((), Slab(q, k, v, mask, bias, softcap))]
    made: list[tuple[tuple[int, ...], Slab]] = []
    for b in range(B):
        for h in range(H):
            picked = None if mask is None else mask.pick(b, h)
            made.append(
                ((b, h), Slab(q[b, h], k[b, h // served], v[b, h // served], picked, head_of(bias, b, h), softcap))
            )
    return made
