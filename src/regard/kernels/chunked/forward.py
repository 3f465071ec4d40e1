"""Attention and its statistics in one pass over blocks of rows, in torch.

`softmax` reads and writes a row while it is in the cache, so the weights of a block come out whole, and everything
`see` asks for is a sum over them. The LSE is read off the largest weight: max − ln(weight at max).
"""

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from regard.kernels.chunked.key_bins import attend_by_bins, suits
from regard.kernels.chunked.scores import Slab, hide, slabs
from regard.kernels.chunked.workers import run_all
from regard.kernels.tiles import Bins, row_blocks, rows_per_block
from regard.masks import BoundMask
from regard.records import See, Statistics, Top

ROWS = 128
"""Rows at a time on the CPU: 2 MiB of scores at 4,096 keys."""


@dataclass(slots=True)
class Results:
    """The tensors that blocks write into, B H first."""

    out: Tensor
    lse: Tensor
    map: Tensor | None = None
    received: Tensor | None = None
    entropy: Tensor | None = None
    top_indices: Tensor | None = None
    top_weights: Tensor | None = None

    def at(self, place: tuple[int, ...]) -> "Results":
        """The part that belongs to one slab."""
        parts: dict[str, Any] = {}
        for one in fields(self):
            whole = getattr(self, one.name)
            parts[one.name] = None if whole is None else whole[place]
        return Results(**parts)


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    see: See | None,
) -> tuple[Tensor, Tensor, Statistics]:
    """Output, LSE and statistics; no gradients are recorded."""
    T, S = q.shape[2], k.shape[2]
    bins = Bins.of(T, S, see)
    results = _allocate(q, S, v.shape[-1], bins, see)
    if T and S and q.shape[0] * q.shape[1]:
        pieces = slabs(q, k, v, mask, bias, scale, softcap)

        def work(piece: tuple[tuple[int, ...], Slab]) -> None:
            slab, own = piece[1], results.at(piece[0])
            if bins is not None and own.map is not None and suits(q, slab, see, bins):
                attend_by_bins(slab, bins, own.out, own.lse, own.map)
            else:
                _one_slab(slab, bins, own)

        run_all(work, pieces)
    return results.out, results.lse, _finish(results, see, bins)


def _one_slab(slab: Slab, bins: Bins | None, results: Results) -> None:
    T, S = slab.q.shape[-2], slab.k.shape[-2]
    lead = slab.q.shape[:-2]
    step = rows_per_block(T, S * max(1, lead.numel()), ROWS, bins.high if bins else None)
    # Fresh memory for every block would be paid for in page faults.
    buffers = [slab.q.new_empty(lead.numel() * step * S) for _ in range(2)]
    for rows in row_blocks(0, T, step):
        low, high = slab.reach(rows)
        if low == high:
            continue
        shape = (*lead, rows.stop - rows.start, high - low)
        size = lead.numel() * shape[-2] * shape[-1]
        scores = slab.scores(rows, low, high, out=buffers[0][:size].view(shape))
        highest = scores.amax(-1)
        weights = torch.softmax(scores, -1, out=buffers[1][:size].view(shape))
        sees_nothing = highest == -torch.inf
        if sees_nothing.any():
            weights.masked_fill_(sees_nothing[..., None], 0)  # softmax of nothing is NaN
        lse = highest - weights.amax(-1).log()
        results.lse[..., rows] = lse.masked_fill_(sees_nothing, -torch.inf)
        results.out[..., rows, :] = weights @ slab.v[..., low:high, :]
        if results.entropy is not None:
            mean_score = _mean_score(weights, scores, slab.mask, rows, low)
            results.entropy[..., rows] = (lse - mean_score).masked_fill_(sees_nothing, 0)
        _pool_block(weights, rows, low, bins, results)
        if results.top_indices is not None:
            _strongest(weights, rows, low, S, results)


def _mean_score(weights: Tensor, scores: Tensor, mask: BoundMask | None, rows: slice, low: int) -> Tensor:
    """The sum of weight times score in each row, where a weight of 0 counts nothing, though its score be -inf."""
    if mask is not None:
        hide(scores, mask, rows, low, low + scores.shape[-1], 0.0)
    summed = torch.linalg.vecdot(weights, scores)
    if summed.isnan().any():  # a bias may hide as well
        scores.masked_fill_(scores == -torch.inf, 0)
        summed = torch.linalg.vecdot(weights, scores)
    return summed


def _pool_block(weights: Tensor, rows: slice, low: int, bins: Bins | None, results: Results) -> None:
    """Add a block to the map and to what its keys received."""
    high = low + weights.shape[-1]
    if bins is None or results.map is None:
        if results.received is not None:
            results.received[..., low:high] += _sum_of_rows(weights)
        return
    first, last = rows.start // bins.high, (rows.stop - 1) // bins.high + 1
    if bins.high == 1:
        profile = weights
    else:
        edges = [max(0, r * bins.high - rows.start) for r in range(first, last)] + [weights.shape[-2]]
        profile = torch.stack([_sum_of_rows(weights[..., a:b, :]) for a, b in pairwise(edges)], dim=-2)
    if results.received is not None:
        results.received[..., low:high] += _sum_of_rows(profile)
    left, right = low // bins.wide, -(-high // bins.wide)
    if low % bins.wide or high % bins.wide:
        profile = torch.nn.functional.pad(profile, (low - left * bins.wide, right * bins.wide - high))
    results.map[..., first:last, left:right] += profile.unflatten(-1, (right - left, bins.wide)).sum(-1)


def _sum_of_rows(x: Tensor) -> Tensor:
    """The sum over the second last axis, as a product: half the time of `sum` on a block in the cache."""
    return x.new_ones(x.shape[-2]) @ x


def _strongest(weights: Tensor, rows: slice, low: int, S: int, results: Results) -> None:
    """The strongest keys of each row; where fewer than k are in reach, weights of 0 on keys outside."""
    assert results.top_indices is not None
    assert results.top_weights is not None
    k, width = results.top_indices.shape[-1], weights.shape[-1]
    found = min(k, width)
    values, indices = weights.topk(found, dim=-1)
    results.top_weights[..., rows, :found] = values
    results.top_indices[..., rows, :found] = indices + low
    if found < k:
        outside = [j for j in range(S) if not low <= j < low + width][: k - found]
        results.top_indices[..., rows, found:] = torch.tensor(outside, device=weights.device)


def _allocate(q: Tensor, S: int, Ev: int, bins: Bins | None, see: See | None) -> Results:
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    B, H, T, _ = q.shape
    results = Results(
        out=q.new_zeros((B, H, T, Ev)),
        lse=torch.full((B, H, T), -torch.inf, dtype=exact, device=q.device),
    )
    if see is None:
        return results

    def zeros(*shape: int) -> Tensor:
        return torch.zeros((B, H, *shape), dtype=exact, device=q.device)

    if bins is not None:
        results.map = zeros(bins.R, bins.C)
    results.received = zeros(S) if see.received else None
    results.entropy = zeros(T) if see.entropy else None
    if see.top:
        k = min(see.top, S)
        results.top_weights = zeros(T, k)
        results.top_indices = torch.arange(k, device=q.device).expand(B, H, T, k).clone()
    return results


def _finish(results: Results, see: See | None, bins: Bins | None) -> Statistics:
    if see is None:
        return Statistics()
    if results.map is not None:
        assert bins is not None
        looking = (results.lse != -torch.inf).to(results.map.dtype)  # NaN counts as looking
        padded = torch.nn.functional.pad(looking, (0, bins.R * bins.high - looking.shape[-1]))
        results.map /= padded.unflatten(-1, (bins.R, bins.high)).sum(-1).clamp(min=1)[..., None]
    top = None
    if results.top_indices is not None and results.top_weights is not None:
        top = Top(results.top_indices, results.top_weights)
    return Statistics(
        map=results.map,
        lse=results.lse if see.lse or see.qk else None,
        entropy=results.entropy,
        received=results.received,
        top=top,
    )
