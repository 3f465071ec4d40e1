"""Exact weights of any rectangle, from q, k and the LSE alone: exp(score − LSE)."""

import torch
from torch import Tensor

from regard.kernels.chunked.scores import slabs
from regard.masks import BoundMask


@torch.no_grad()
def rectangle(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    rows: slice,
    cols: slice,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    scale: float,
    softcap: float | None = None,
) -> Tensor:
    """The weights of rows × cols, B H rows cols. q B H T E, k B G S E, lse B H T."""
    shape = (*q.shape[:2], max(0, rows.stop - rows.start), max(0, cols.stop - cols.start))
    weights = lse.new_zeros(shape)
    if not weights.numel():
        return weights
    for place, slab in slabs(q, k, k, mask, bias, scale, softcap):
        scores = slab.scores(rows, cols.start, cols.stop)
        shift = lse[place][..., rows, None]
        # Nothing seen: LSE is -inf and every score is too; exp(-inf - 0) is the 0 it should be.
        weights[place] = (scores - shift.masked_fill(shift == -torch.inf, 0)).exp_()
    return weights
