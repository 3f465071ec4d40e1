"""Statistics and exact weights of attention computed by another kernel, from q, k and its LSE."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.kernels.chunked.forward import ROWS, attend_in_blocks, lse_of_softmax
from regard.kernels.chunked.results import allocate, finish
from regard.kernels.chunked.scores import Slab, exact_dtype, slabs
from regard.kernels.chunked.workers import run_all
from regard.kernels.tiles import Bins, is_imprecise, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.masks.rules import Band
from regard.padding import Padding, without_rows
from regard.records import See, Statistics

MAX_SCORES_TOGETHER = 2**14
"""Scores of a head up to which all heads are computed together instead of in threads."""


@torch.no_grad()
def observe(
    q: Tensor,
    k: Tensor,
    lse: Tensor | None = None,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    scale: float,
    softcap: float | None = None,
    see: See,
    padding: Padding | None = None,
) -> Statistics:
    """The statistics in `see`. q is B H T E, k is B G S E, lse is B H T, if the other kernel returned it."""
    T, S = q.shape[2], k.shape[2]
    if lse is not None and _only_lse(see) and S and _is_reliable(lse, q, mask, bias):
        return Statistics(lse=without_rows(lse, None if padding is None else padding.queries, -torch.inf).clone())
    bins = Bins.of(T, S, see)
    results = allocate(q, S, 0, bins, see, padding)
    if T and S and q.shape[0] * q.shape[1]:

        def work(piece: tuple[tuple[int, ...], Slab]) -> None:
            place, slab = piece
            attend_in_blocks(slab, bins, results.at(place))

        if q.device.type != "cpu" or T * S <= MAX_SCORES_TOGETHER:
            work(((), _all_heads(q, k, mask, bias, scale, softcap)))
        else:
            run_all(work, slabs(q, k, k[..., :0], mask, bias, scale, softcap))
    return finish(results, see, bins, padding)


def all_weights(
    q: Tensor,
    k: Tensor,
    lse: Tensor | None,
    mask: BoundMask | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
) -> tuple[Tensor, Tensor]:
    """All weights B H T S and their LSE B H T, for small calls; arguments as for `observe`."""
    if mask is None and bias is None and softcap is None and q.dtype == torch.float32 and q.shape[1] == k.shape[1]:
        scores = torch.matmul(q * scale, k.mT)  # the same, faster: a decoder makes a dozen calls per token
    else:
        scores = _all_heads(q, k, mask, bias, scale, softcap).scores(slice(0, q.shape[2]), 0, k.shape[2])
    weights = torch.softmax(scores, -1)
    if lse is not None and _is_reliable(lse, q, mask, bias):
        return weights, lse.clone()
    return weights, lse_of_softmax(scores, weights)[0]


def weights_of_rows(q: Tensor, parts: Sequence[Tensor], scale: float, counts: Sequence[int]) -> Tensor:
    """Weights B H T S of rows where row i attends to the first `counts[i]` keys, as for tokens generated one by one.

    `parts` are consecutive keys, B G · E.
    """
    rows = slice(0, q.shape[2])
    slabs = [_all_heads(q, k, None, None, scale, None) for k in parts]
    scores = torch.cat([slab.scores(rows, 0, slab.k.shape[2]) for slab in slabs], -1)
    ends = torch.tensor(counts, device=q.device)[:, None]
    return torch.softmax(scores.masked_fill_(torch.arange(scores.shape[-1], device=q.device) >= ends, -torch.inf), -1)


def _all_heads(
    q: Tensor, k: Tensor, mask: BoundMask | None, bias: Tensor | None, scale: float, softcap: float | None
) -> Slab:
    """All heads of all samples, without copying keys to another layout: a copy costs as much as a row of scores."""
    exact = exact_dtype(q)
    q, k = q.to(exact) * scale, k.to(exact)
    return Slab(q, k, k, mask, None if bias is None else bias.to(exact), softcap)


def _only_lse(see: See) -> bool:
    return see == See(map=None, sink=False, lse=see.lse, qk=see.qk)


def _is_reliable(lse: Tensor, q: Tensor, mask: BoundMask | None, bias: Tensor | None) -> bool:
    """Whether the LSE of another kernel is reliable: full precision, and every query surely attends to a key.

    For a fully masked query PyTorch's CPU kernel returns an LSE of 0.
    """
    if lse.dtype != q.dtype or bias is not None:
        return False
    band = None if mask is None else mask.rule
    if mask is None or band is None:
        return True
    causal = isinstance(band, Band) and band.left is None and band.right is not None and band.right >= 0
    return causal and mask.reach(slice(0, 1))[1] > 0


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
    """The weights of rows × cols, B H rows cols. q is B H T E, k is B G S E, lse is B H T."""
    shape = (*q.shape[:2], max(0, rows.stop - rows.start), max(0, cols.stop - cols.start))
    weights = lse.new_zeros(shape)
    if not weights.numel():
        return weights
    for place, slab in slabs(q, k, k, mask, bias, scale, softcap):
        shift = lse[place][..., rows, None]
        masked = shift == -torch.inf  # fully masked or padding
        if is_imprecise(shift, torch.finfo(shift.dtype).eps):
            _recompute_weights(slab, rows, cols, weights[place])
            weights[place].masked_fill_(masked, 0)
            continue
        scores = slab.scores(rows, cols.start, cols.stop)
        weights[place] = (scores - shift.masked_fill(masked, torch.inf)).exp_()
    return weights


def _recompute_weights(slab: Slab, rows: slice, cols: slice, weights: Tensor) -> None:
    """Write the same weights into `weights`, computed without the LSE."""
    S, heads = slab.k.shape[-2], slab.q.shape[:-2].numel()
    for block in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S * heads, ROWS)):
        scores = slab.scores(block, 0, S)
        whole = torch.softmax(scores, -1)
        lse_of_softmax(scores, whole)
        weights[..., block.start - rows.start : block.stop - rows.start, :] = whole[..., cols]
