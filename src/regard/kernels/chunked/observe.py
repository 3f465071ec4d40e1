"""The statistics of attention that somebody else has computed: q and k again, block of rows by block of rows.

No output is made. The other kernel's LSE would spare `softmax` the search for each row's maximum and sum, but that is
the cheaper part of it, and kernels round their LSE as they like; so it is used only where nothing else is asked for.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.forward import ROWS, mean_score
from regard.kernels.chunked.results import Results, add_block, allocate, finish
from regard.kernels.chunked.scores import Slab, slabs
from regard.kernels.chunked.workers import run_all
from regard.kernels.tiles import Bins, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.masks.rules import Band
from regard.records import See, Statistics

SMALL = 2**14
"""Scores of a head, up to which all heads are computed together instead of being shared out among threads."""


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
) -> Statistics:
    """What `see` asks for. q B H T E, k B G S E, lse B H T, where the other kernel let it out."""
    T, S = q.shape[2], k.shape[2]
    if lse is not None and _only_lse(see) and S and _is_sure(lse, q, mask, bias):
        return Statistics(lse=lse.clone())
    bins = Bins.of(T, S, see)
    results = allocate(q, S, 0, bins, see)
    if T and S and q.shape[0] * q.shape[1]:

        def work(piece: tuple[tuple[int, ...], Slab]) -> None:
            place, slab = piece
            _one_slab(slab, bins, results.at(place))

        if q.device.type != "cpu" or T * S <= SMALL:
            work(((), _together(q, k, mask, bias, scale, softcap)))
        else:
            run_all(work, slabs(q, k, k[..., :0], mask, bias, scale, softcap))
    return finish(results, see, bins)


def weights_at_once(q: Tensor, k: Tensor, lse: Tensor | None = None, **options: Any) -> tuple[Tensor, Tensor]:
    """All weights B H T S and their LSE B H T, for what is small; arguments as for `observe`."""
    slab = _together(q, k, **options)
    scores = slab.scores(slice(0, q.shape[2]), 0, k.shape[2])
    weights = torch.softmax(scores, -1)
    if lse is not None and _is_sure(lse, q, slab.mask, slab.bias):
        return weights, lse.clone()
    return weights, _settled(scores, weights)


def _together(
    q: Tensor, k: Tensor, mask: BoundMask | None, bias: Tensor | None, scale: float, softcap: float | None
) -> Slab:
    """All heads of all samples, keys as they lie: a copy of them costs as much as a row of scores."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    q, k = q.to(exact) * scale, k.to(exact)
    return Slab(q, k, k, mask, None if bias is None else bias.to(exact), softcap)


def _one_slab(slab: Slab, bins: Bins | None, results: Results) -> None:
    T, S = slab.q.shape[-2], slab.k.shape[-2]
    lead = slab.q.shape[:-2]
    step = rows_per_block(T, S * max(1, lead.numel()), ROWS, bins.high if bins else None)
    # Fresh memory for every block would be paid for in page faults.
    buffers = [slab.q.new_empty(lead.numel() * min(step, T) * S) for _ in range(2)]
    for rows in row_blocks(0, T, step):
        low, high = slab.reach(rows)
        if low == high:
            continue
        shape = (*lead, rows.stop - rows.start, high - low)
        size = lead.numel() * shape[-2] * shape[-1]
        scores = slab.scores(rows, low, high, out=buffers[0][:size].view(shape))
        weights = torch.softmax(scores, -1, out=buffers[1][:size].view(shape))
        own = _settled(scores, weights)
        results.lse[..., rows] = own
        if results.entropy is not None:
            summed = mean_score(weights, scores, slab.mask, rows, low)
            results.entropy[..., rows] = (own - summed).masked_fill_(own == -torch.inf, 0)
        add_block(weights, rows, low, S, bins, results)


def _settled(scores: Tensor, weights: Tensor) -> Tensor:
    """The LSE of each row, read off its largest weight; rows that see nothing get -inf, and weights of 0."""
    highest = scores.amax(-1)
    lse = highest - weights.amax(-1).log()
    nothing = highest == -torch.inf
    if nothing.any():
        weights.masked_fill_(nothing[..., None], 0)  # softmax of nothing is NaN
        lse.masked_fill_(nothing, -torch.inf)
    return lse


def _only_lse(see: See) -> bool:
    return see == See(map=None, sink=False, lse=see.lse, qk=see.qk)


def _is_sure(lse: Tensor, q: Tensor, mask: BoundMask | None, bias: Tensor | None) -> bool:
    """Whether another kernel's LSE may be believed: in full precision, and where each query surely sees a key.

    Of one that sees none, PyTorch's kernel on the CPU says that its LSE is 0.
    """
    if lse.dtype != q.dtype or bias is not None:
        return False
    band = None if mask is None else mask.rule
    if mask is None or band is None:
        return True
    causal = isinstance(band, Band) and band.left is None and band.right is not None and band.right >= 0
    return causal and mask.reach(slice(0, 1))[1] > 0
