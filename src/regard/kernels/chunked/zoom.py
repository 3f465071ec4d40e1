"""Exact weights of any rectangle, from q, k and the LSE alone: exp(score − LSE).

Where the LSE is so large that its last digit counts, the rows are weighed again, with all their keys.
"""

import torch
from torch import Tensor

from regard.kernels.chunked.forward import ROWS, settled
from regard.kernels.chunked.scores import Slab, slabs
from regard.kernels.rounding import is_coarse
from regard.kernels.tiles import row_blocks, rows_per_block
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
        shift = lse[place][..., rows, None]
        nothing = shift == -torch.inf  # seen, or no query but padding
        if is_coarse(shift, torch.finfo(shift.dtype).eps):
            _weigh_again(slab, rows, cols, weights[place])
            weights[place].masked_fill_(nothing, 0)
            continue
        scores = slab.scores(rows, cols.start, cols.stop)
        weights[place] = (scores - shift.masked_fill(nothing, torch.inf)).exp_()
    return weights


def _weigh_again(slab: Slab, rows: slice, cols: slice, weights: Tensor) -> None:
    """The same without an LSE, into `weights`."""
    S, heads = slab.k.shape[-2], slab.q.shape[:-2].numel()
    for some in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S * heads, ROWS)):
        scores = slab.scores(some, 0, S)
        whole = torch.softmax(scores, -1)
        settled(scores, whole)
        weights[..., some.start - rows.start : some.stop - rows.start, :] = whole[..., cols]
