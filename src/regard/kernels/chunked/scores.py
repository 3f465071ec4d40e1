"""One block of scores in torch: the product, softcap, bias and mask.

A `Slab` is what is computed together: one head of one sample on the CPU, all of them on a GPU. Its tensors have
the same leading axes, none or (B, H), before positions and width.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from regard.kernels.tiles import COLUMNS_PER_QUESTION, block_of, head_of
from regard.masks import BoundMask


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

    def scores(self, rows: slice, low: int, high: int, out: Tensor | None = None) -> Tensor:
        """The scores of these rows and of the keys low … high, -inf where hidden."""
        scores = torch.matmul(self.q[..., rows, :], self.k[..., low:high, :].mT, out=out)
        if self.softcap is not None:
            scores.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.bias is not None:
            scores.add_(block_of(self.bias, rows, slice(low, high)))
        if self.mask is not None:
            hide(scores, self.mask, rows, low, high, -torch.inf)
        return scores


def hide(scores: Tensor, mask: BoundMask, rows: slice, low: int, high: int, value: float) -> None:
    """Write `value` where the rows may not look."""
    for tile, seen in mask.doubtful(rows, low, high, COLUMNS_PER_QUESTION):
        part = scores[..., tile.start - low : tile.stop - low]
        if seen is False:
            part.fill_(value)
        else:
            part.masked_fill_(~cast(Tensor, seen), value)


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
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
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
