"""One block of scores in torch, and statistics summed over blocks of weights: adding a block, and the final means.

A block of weights is some rows and a range of keys, from any implementation; of the scores only their order is used. A
`Slab` holds the tensors computed together: one head of one sample on the CPU, all heads on a GPU. Its tensors have the
same leading axes, none or (B, H), before positions and width.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.axes import distance_count
from regard.kernels.division import (
    KEYS_PER_MASK_BLOCK,
    Bins,
    block_of,
    head_of,
    row_blocks,
    rows_per_block,
    sums_by_distance,
)
from regard.masks import BoundMask
from regard.masks.padding import Padding, without_rows
from regard.masks.rules import Band, Frame
from regard.records import See, Statistics, Top


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
    if q.shape[:-2] == k.shape[:-2]:
        return torch.matmul(q, k.mT, out=out)
    folded = q.unflatten(-3, (k.shape[-3], -1)).flatten(-3, -2)  # … G (H/G · rows) E
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


Place = tuple[int | slice, ...]
"""The index of a slab in B H."""


def slabs(call: AttentionCall, together: int = 1) -> list[tuple[Place, Slab]]:
    """The slabs of a call, each with its index in B H. At least float32.

    together   on the CPU: the number of heads in a slab; more than one only where `are_heads_alike`, not for `v`
    """
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
    found: list[tuple[Place, Slab]] = []
    for b in range(B):
        for heads in row_blocks(0, H, together):
            h = heads.start
            own, shared = heads, slice(h // group_size, -(-heads.stop // group_size))
            at, keys = ((b, h), (b, h // group_size)) if together == 1 else ((b, own), (b, shared))
            head_mask = None if mask is None else mask.pick(b, h)
            found.append((at, Slab(q[at], k[keys], v[keys], head_mask, head_of(bias, b, h), softcap)))
    return found


def are_heads_alike(call: AttentionCall) -> bool:
    """Whether all heads have the same mask and no bias, as far as the kind of mask tells."""
    return call.bias is None and (call.bound is None or isinstance(call.bound.rule, Band))


@dataclass(slots=True)
class Results:
    """The tensors that blocks write into, B H first. `first` and `diagonals` are sums of weights until `finish`.

    is_text   B H T, False for padding queries: their weights are in no sum
    """

    out: Tensor
    lse: Tensor
    max_score: Tensor | None = None
    map: Tensor | None = None
    received: Tensor | None = None
    entropy: Tensor | None = None
    top_indices: Tensor | None = None
    top_weights: Tensor | None = None
    first: Tensor | None = None
    diagonals: Tensor | None = None
    is_text: Tensor | None = None

    def at(self, index: Place) -> "Results":
        """The part that belongs to one slab."""
        parts: dict[str, Any] = {}
        for field in fields(self):
            whole = getattr(self, field.name)
            parts[field.name] = None if whole is None else whole[index]
        return Results(**parts)


def allocate(q: Tensor, S: int, Ev: int, bins: Bins | None, see: See | None, padding: Padding | None = None) -> Results:
    """The tensors for the statistics in `see` and for an output of width Ev."""
    exact = exact_dtype(q)
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
    if padding is not None and padding.queries is not None:
        results.is_text = padding.queries[:, None].expand(B, H, T)
    first_key_differs = padding is not None and padding.keys is not None  # the first key differs by sample
    results.received = zeros(S) if see.received or (see.sink and first_key_differs) else None
    results.max_score = torch.full_like(results.lse, -torch.inf) if see.max_score else None
    results.entropy = zeros(T) if see.entropy else None
    results.first = zeros() if see.sink and not first_key_differs else None
    results.diagonals = zeros(max(0, T + S - 1)) if see.distance else None
    if see.top:
        k = min(see.top, S)
        results.top_weights = zeros(T, k)
        results.top_indices = torch.arange(k, device=q.device).expand(B, H, T, k).clone()
    return results


def add_block(weights: Tensor, rows: slice, low: int, bins: Bins | None, results: Results) -> None:
    """Add the weights of these rows and the keys from `low` on to every requested sum; weights of padding become 0."""
    if results.is_text is not None:
        weights.masked_fill_(~results.is_text[..., rows, None], 0)
    high = low + weights.shape[-1]
    columns = None
    if bins is not None and results.map is not None:
        columns = _add_to_map(weights, rows, low, bins, results.map)
    if results.received is not None:
        results.received[..., low:high] += _sum_of_rows(weights if columns is None else columns)
    if results.first is not None and low == 0:
        results.first += weights[..., 0].sum(-1)
    if results.diagonals is not None:
        # The diagonal of key `low` and the last of these rows, counted from the lower left of the whole matrix.
        start = low + (results.lse.shape[-1] - rows.stop)
        diagonals_of_block = _sums_of_diagonals(weights)
        results.diagonals[..., start : start + diagonals_of_block.shape[-1]] += diagonals_of_block


def _add_to_map(weights: Tensor, rows: slice, low: int, bins: Bins, pooled: Tensor) -> Tensor:
    """Add a block to the sums of the map; returns it summed over the rows of each bin."""
    high = low + weights.shape[-1]
    first, last = rows.start // bins.height, (rows.stop - 1) // bins.height + 1
    columns = weights if bins.height == 1 else _sums_of_bins(weights, rows.start, bins.height)
    left, right = low // bins.width, -(-high // bins.width)
    padded = columns
    if low % bins.width or high % bins.width:
        padded = torch.nn.functional.pad(columns, (low - left * bins.width, right * bins.width - high))
    pooled[..., first:last, left:right] += _sums_of_columns(padded, bins.width)
    return columns


def _sums_of_bins(weights: Tensor, start: int, high: int) -> Tensor:
    """The sums over the rows of each bin: the end of a bin begun earlier, whole bins, the beginning of the next."""
    height = weights.shape[-2]
    head = min(height, -start % high)
    whole = (height - head) // high
    tail = head + whole * high
    parts = []
    if head:
        parts.append(_sum_of_rows(weights[..., :head, :])[..., None, :])
    if whole:
        parts.append(weights[..., head:tail, :].unflatten(-2, (whole, high)).sum(-2))
    if tail < height:
        parts.append(_sum_of_rows(weights[..., tail:, :])[..., None, :])
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)


def _sums_of_columns(x: Tensor, width: int) -> Tensor:
    """The sums over every `width` columns, as a product: for few columns a quarter of the time of `sum`."""
    return x.unflatten(-1, (-1, width)) @ x.new_ones(width)


def _sum_of_rows(x: Tensor) -> Tensor:
    """The sum over the second last axis, as a product: half the time of `sum` on a block in the cache."""
    return x.new_ones(x.shape[-2]) @ x


def _sums_of_diagonals(weights: Tensor) -> Tensor:
    """Sums along the diagonals, lower left first: each row is shifted by one against the next, then rows are summed."""
    *lead, height, width = weights.shape
    across = height + width - 1
    sheared = weights.new_zeros((*lead, height, across))
    step = (*sheared.stride()[:-2], across - 1, 1)
    sheared.as_strided(weights.shape, step, storage_offset=height - 1).copy_(weights)
    return _sum_of_rows(sheared)


def add_top_keys(scores: Tensor, weights: Tensor, rows: slice, low: int, results: Results, S: int) -> None:
    """Add the top keys of these rows; a row with too few visible keys gets the first masked ones, with weight 0."""
    assert results.top_indices is not None
    assert results.top_weights is not None
    k, width = results.top_indices.shape[-1], weights.shape[-1]
    positions = _top_positions(scores, min(k, width))
    keys = positions + low
    too_few = scores.gather(-1, positions[..., -1:])[..., 0] == -torch.inf
    if width < k:
        keys = torch.nn.functional.pad(keys, (0, k - width))
        too_few = torch.ones_like(too_few)
    if too_few.any():
        # The first k masked keys on either side are enough, in order with those in the block.
        before, after = min(low, k), min(S - low - width, k)
        positions = _top_positions(torch.nn.functional.pad(scores[too_few], (before, after), value=-torch.inf), k)
        keys[too_few] = torch.where(positions < before, positions, positions - before + low)
    positions = keys - low
    in_block = (positions >= 0) & (positions < width)
    results.top_indices[..., rows, :] = keys
    results.top_weights[..., rows, :] = weights.gather(-1, positions.clamp(0, width - 1)).masked_fill_(~in_block, 0)


def _top_positions(x: Tensor, k: int) -> Tensor:
    """Positions of the k highest numbers of each row, highest first, the earlier of equal ones first."""
    values, positions = x.topk(min(k + 1, x.shape[-1]), dim=-1)
    # `topk` returns equal numbers in any order: such rows, usually none, are recomputed.
    equal = ~(values[..., :-1] > values[..., 1:]).all(-1)
    positions = positions[..., :k].contiguous()
    if equal.any():
        positions[equal] = _top_positions_with_ties(x[equal], values[equal][:, k - 1 : k], k)
    return positions


def _top_positions_with_ties(x: Tensor, least: Tensor, k: int) -> Tensor:
    """The same for rows with equal numbers; `least` is the lowest number selected."""
    above = x > least
    level = ~(above | (x < least))  # includes NaN
    selected = above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))  # k per row
    positions = selected.nonzero()[:, 1].view(-1, k)
    order = x.gather(-1, positions).sort(dim=-1, descending=True, stable=True).indices
    return positions.gather(-1, order)


def finish(results: Results, see: See | None, bins: Bins | None, padding: Padding | None = None) -> Statistics:
    """The requested means after every block was added: over queries that attend to a key and are not padding."""
    if see is None:
        return Statistics()
    is_text = None if padding is None else padding.queries
    lse = without_rows(results.lse, is_text, -torch.inf)
    if results.map is not None:
        assert bins is not None
        average(results.map, lse, bins)
    count = attending(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    top = None
    if results.top_indices is not None and results.top_weights is not None:
        top = top_without_padding(results.top_indices, results.top_weights, is_text)
    first = results.first
    if see.sink and first is None:
        assert padding is not None
        assert results.received is not None
        first = at_first_keys(results.received, padding)
    return Statistics(
        map=results.map,
        lse=lse if see.lse or see.qk else None,
        max_score=None if results.max_score is None else without_rows(results.max_score, is_text, -torch.inf),
        entropy=None if results.entropy is None else without_rows(results.entropy, is_text, 0),
        received=results.received if see.received else None,
        top=top,
        sink=None if first is None or count is None else first / count,
        distance=None if results.diagonals is None or count is None else _distances(results, count, padding),
    )


def at_first_keys(received: Tensor, padding: Padding) -> Tensor:
    """The weight received by the first key of each text, B H, from B H S."""
    first = padding.first_keys()
    if first is None:
        return received[..., :1].sum(-1)
    return received.gather(-1, first[:, None, None].expand(*received.shape[:2], 1))[..., 0]


def top_without_padding(indices: Tensor, weights: Tensor, is_text: Tensor | None) -> Top:
    """The top keys, B H T k; for padding the first keys with weight 0, as for fully masked queries."""
    if is_text is None:
        return Top(indices, weights)
    placeholder = torch.arange(indices.shape[-1], device=indices.device)
    return Top(torch.where(is_text[:, None, :, None], indices, placeholder), without_rows(weights, is_text, 0, axes=1))


def attending(lse: Tensor) -> Tensor:
    """1 for each query that attends to a key, else 0."""
    return (lse != -torch.inf).to(lse.dtype)  # NaN counts as attending


def average(sums: Tensor, lse: Tensor, bins: Bins) -> None:
    """Turn a map of sums, B H R C, into means over the attending queries of each bin, in place."""
    padded = torch.nn.functional.pad(attending(lse), (0, bins.R * bins.height - lse.shape[-1]))
    sums /= padded.unflatten(-1, (bins.R, bins.height)).sum(-1).clamp(min=1)[..., None]


def _distances(results: Results, count: Tensor, padding: Padding | None) -> Tensor:
    assert results.diagonals is not None
    T = results.lse.shape[-1]
    S = results.diagonals.shape[-1] - T + 1
    if not T or not S:
        return count.new_zeros((*count.shape, distance_count(T, S)))
    offsets = None if padding is None else padding.offsets(T, S)
    if offsets is not None:
        far = (T - 1 + offsets[:, None] - torch.arange(T + S - 1, device=offsets.device)).abs()  # B diagonals
        limits = 2 ** torch.arange(distance_count(T, S) - 1, device=offsets.device)
        bins = torch.bucketize(far, limits, right=True)[:, None].expand_as(results.diagonals)
        distance_sums = count.new_zeros((*count.shape, len(limits) + 1)).scatter_add_(-1, bins, results.diagonals)
        return distance_sums / count[..., None]
    return torch.stack(sums_by_distance(results.diagonals, S), dim=-1) / count[..., None]
