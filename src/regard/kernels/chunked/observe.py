"""Statistics and exact weights of attention computed by another kernel, from q, k and its LSE."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.chunked.forward import ROWS, attend_in_blocks, lse_of_softmax
from regard.kernels.chunked.results import allocate, finish
from regard.kernels.chunked.scores import Slab, exact_dtype, slabs
from regard.kernels.chunked.workers import run_all
from regard.kernels.tiles import Bins, is_imprecise, row_blocks, rows_per_block
from regard.masks.padding import without_rows
from regard.masks.rules import Band
from regard.records import See, Statistics

MAX_SCORES_TOGETHER = 2**14
"""Scores of a head up to which all heads are computed together instead of in threads."""


@torch.no_grad()
def observe(call: AttentionCall, lse: Tensor | None = None) -> Statistics:
    """The statistics in `see`; lse is B H T, if the other kernel returned it. The values are not used."""
    q, see, padding = call.q, call.see, call.padding
    assert see is not None
    T, S = q.shape[2], call.k.shape[2]
    if lse is not None and _only_lse(see) and S and _is_reliable(lse, call):
        return Statistics(lse=without_rows(lse, None if padding is None else padding.queries, -torch.inf).clone())
    bins = Bins.of(T, S, see)
    results = allocate(q, S, 0, bins, see, padding)
    if T and S and q.shape[0] * q.shape[1]:

        def work(piece: tuple[tuple[int, ...], Slab]) -> None:
            place, slab = piece
            attend_in_blocks(slab, bins, results.at(place))

        if q.device.type != "cpu" or T * S <= MAX_SCORES_TOGETHER:
            work(((), _all_heads(call)))
        else:
            run_all(work, slabs(replace(call, v=call.k[..., :0])))
    return finish(results, see, bins, padding)


def all_weights(call: AttentionCall, lse: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """All weights B H T S, their LSE B H T, and their scores, for small calls; arguments as for `observe`."""
    q, k = call.q, call.k
    is_plain = call.bound is None and call.bias is None and call.softcap is None
    if is_plain and q.dtype == torch.float32 and q.shape[1] == k.shape[1]:
        scores = torch.matmul(q * call.scale, k.mT)  # the same, faster: a decoder makes a dozen calls per token
    else:
        scores = _all_heads(call).scores(slice(0, q.shape[2]), 0, k.shape[2])
    weights = torch.softmax(scores, -1)
    if lse is not None and _is_reliable(lse, call):
        return weights, lse.clone(), scores
    return weights, lse_of_softmax(scores, weights)[0], scores


def scores_of_rows(q: Tensor, parts: Sequence[Tensor], scale: float, counts: Sequence[int]) -> Tensor:
    """Scores B H T S of rows where row i attends to the first `counts[i]` keys, as for tokens generated one by one.

    `parts` are consecutive keys, B G · E.
    """
    rows = slice(0, q.shape[2])
    slabs = [_all_heads(AttentionCall(q, k, k, scale)) for k in parts]
    scores = torch.cat([slab.scores(rows, 0, slab.k.shape[2]) for slab in slabs], -1)
    ends = torch.tensor(counts, device=q.device)[:, None]
    return scores.masked_fill_(torch.arange(scores.shape[-1], device=q.device) >= ends, -torch.inf)


def _all_heads(call: AttentionCall) -> Slab:
    """All heads of all samples, without copying keys to another layout: a copy costs as much as a row of scores."""
    exact = exact_dtype(call.q)
    q, k = call.q.to(exact) * call.scale, call.k.to(exact)
    return Slab(q, k, k, call.bound, None if call.bias is None else call.bias.to(exact), call.softcap)


def _only_lse(see: See) -> bool:
    return see == See(map=None, sink=False, lse=see.lse, outputs=see.outputs, qk=see.qk, v=see.v)


def _is_reliable(lse: Tensor, call: AttentionCall) -> bool:
    """Whether the LSE of another kernel is reliable: full precision, and every query surely attends to a key.

    For a fully masked query PyTorch's CPU kernel returns an LSE of 0.
    """
    mask = call.bound
    if lse.dtype != call.q.dtype or call.bias is not None:
        return False
    band = None if mask is None else mask.rule
    if mask is None or band is None:
        return True
    causal = isinstance(band, Band) and band.left is None and band.right is not None and band.right >= 0
    return causal and mask.reach(slice(0, 1))[1] > 0


@torch.no_grad()
def rectangle(call: AttentionCall, lse: Tensor, rows: slice, cols: slice) -> Tensor:
    """The weights of rows × cols, B H rows cols; lse is B H T. The values are not used."""
    shape = (*call.q.shape[:2], max(0, rows.stop - rows.start), max(0, cols.stop - cols.start))
    weights = lse.new_zeros(shape)
    if not weights.numel():
        return weights
    for place, slab in slabs(call):
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
