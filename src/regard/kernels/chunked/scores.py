"""One block of scores in torch: product, softcap, bias and mask.

A `Slab` holds the tensors computed together: one head of one sample on the CPU, all heads on a GPU. Its tensors have
the same leading axes, none or (B, H), before positions and width.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.tiles import KEYS_PER_MASK_BLOCK, block_of, head_of, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.masks.rules import Band, Frame


@dataclass(frozen=True, slots=True)
class Slab:
    """Scaled queries, keys, values, and the mask."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: BoundMask | None
    bias: Tensor | None
    softcap: float | None

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[-2]) if self.mask is None else self.mask.reach(rows)

    def blocks(self, max_rows: int, bin_height: int | None = None) -> list[tuple[slice, int, int]]:
        """Blocks of at most `max_rows` rows and of whole bins, each with the range of keys visible to it.

        Rows without a visible key are left out.
        """
        T, S = self.q.shape[-2], self.k.shape[-2]
        widest = S if self.mask is None else self.mask.max_reach(max_rows)
        step = rows_per_block(T, widest * max(1, self.q.shape[:-2].numel()), max_rows, bin_height)
        ranges = ((rows, *self.reach(rows)) for rows in row_blocks(0, T, step))
        return [(rows, low, high) for rows, low, high in ranges if low < high]

    def scores(self, rows: slice, low: int, high: int, out: Tensor | None = None) -> Tensor:
        """The scores of these rows and the keys low … high, -inf where masked."""
        scores = _products(self.q[..., rows, :], self.k[..., low:high, :], out)
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.bias is not None:
            scores.add_(block_of(self.bias, rows, slice(low, high)))
        if self.mask is not None:
            mask_out(scores, self.mask, rows, low, high, -torch.inf)
        return scores


def _products(q: Tensor, k: Tensor, out: Tensor | None) -> Tensor:
    """q kᵀ, where k may have fewer heads than q: query heads that share keys are stacked along the rows."""
    if q.dim() == 2 or q.shape[1] == k.shape[1]:
        return torch.matmul(q, k.mT, out=out)
    folded = q.unflatten(1, (k.shape[1], -1)).flatten(2, 3)  # B G (H/G · rows) E
    return torch.matmul(folded, k.mT).view(*q.shape[:-1], k.shape[-2])


def mask_out(scores: Tensor, mask: BoundMask, rows: slice, low: int, high: int, value: float) -> None:
    """Write `value` where keys are masked for the rows."""
    if isinstance(mask.rule, Band):
        _mask_outside_band(scores, mask.rule, mask.frame, rows, low, high, value)
        return
    for tile, visible in mask.partial_tiles(rows, low, high, KEYS_PER_MASK_BLOCK):
        part = scores[..., tile.start - low : tile.stop - low]
        if visible is False:
            part.fill_(value)
        else:
            part.masked_fill_(~cast(Tensor, visible), value)


def _mask_outside_band(
    scores: Tensor, band: Band, frame: Frame, rows: slice, low: int, high: int, value: float
) -> None:
    """The same for a band, whose edges are equal in every block of every head and are cached."""
    full_start, full_stop = band.fully_visible(frame, rows)
    for first, last in (
        ((low, min(full_start, high)), (max(low, full_stop), high)) if full_start < full_stop else ((low, high),)
    ):
        if first < last:
            lead = rows.start + band.offset(frame) - first
            masked = _outside_band(band.left, band.right, lead, scores.shape[-2], last - first, scores.device)
            scores[..., first - low : last - low].masked_fill_(masked, value)


@lru_cache(maxsize=64)
def _outside_band(
    left: int | None, right: int | None, lead: int, height: int, width: int, device: torch.device
) -> Tensor:
    """The keys masked by a band: for `height` queries, the first `lead` positions after the first of `width` keys."""
    queries = torch.arange(lead, lead + height, device=device)[:, None]
    keys = torch.arange(width, device=device)
    masked = torch.zeros(height, width, dtype=torch.bool, device=device)
    if left is not None:
        masked |= keys < queries - left
    return masked if right is None else masked | (keys > queries + right)


def exact_dtype(x: Tensor) -> torch.dtype:
    """The dtype of the computation: float64 for float64, float32 for the others."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def slabs(call: AttentionCall) -> list[tuple[tuple[int, ...], "Slab"]]:
    """The slabs of a call, each with its index in B H. At least float32; on the CPU one slab per head."""
    exact = exact_dtype(call.q)
    B, H = call.q.shape[:2]
    group_size = H // max(1, call.k.shape[1])
    # One layout, so that rounding does not depend on the caller's memory layout.
    q, k, v = (x.to(exact).contiguous() for x in (call.q, call.k, call.v))
    q = q * call.scale
    mask, softcap = call.bound, call.softcap
    bias = None if call.bias is None else call.bias.to(exact)
    if q.device.type != "cpu":
        k, v = (x if group_size == 1 else x.repeat_interleave(group_size, dim=1) for x in (k, v))
        return [((), Slab(q, k, v, mask, bias, softcap))]
    slabs_of_heads: list[tuple[tuple[int, ...], Slab]] = []
    for b in range(B):
        for h in range(H):
            head_mask = None if mask is None else mask.pick(b, h)
            slabs_of_heads.append(
                (
                    (b, h),
                    Slab(
                        q[b, h], k[b, h // group_size], v[b, h // group_size], head_mask, head_of(bias, b, h), softcap
                    ),
                )
            )
    return slabs_of_heads
