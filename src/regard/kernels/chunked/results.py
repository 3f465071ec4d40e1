"""What is added up while blocks of weights pass by: the tensors, one block added, and the means in the end.

A block is rows of weights, a range of keys wide, whoever made them; of scores only their order matters here.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from regard.axes import distance_count
from regard.kernels.chunked.scores import exact_dtype
from regard.kernels.tiles import Bins, by_distance
from regard.padding import Padding, without_rows
from regard.records import See, Statistics, Top


@dataclass(slots=True)
class Results:
    """The tensors that blocks write into, B H first. `first` and `diagonals` are sums of weights until the end.

    text    B H T, False for queries that are padding: their weights are in no sum
    """

    out: Tensor
    lse: Tensor
    map: Tensor | None = None
    received: Tensor | None = None
    entropy: Tensor | None = None
    top_indices: Tensor | None = None
    top_weights: Tensor | None = None
    first: Tensor | None = None
    diagonals: Tensor | None = None
    text: Tensor | None = None

    def at(self, place: tuple[int, ...]) -> "Results":
        """The part that belongs to one slab."""
        parts: dict[str, Any] = {}
        for one in fields(self):
            whole = getattr(self, one.name)
            parts[one.name] = None if whole is None else whole[place]
        return Results(**parts)


def allocate(q: Tensor, S: int, Ev: int, bins: Bins | None, see: See | None, padding: Padding | None = None) -> Results:
    """Room for what `see` asks for, and for an output Ev wide."""
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
        results.text = padding.queries[:, None].expand(B, H, T)
    has_own_first = padding is not None and padding.keys is not None  # another key in each sample
    results.received = zeros(S) if see.received or (see.sink and has_own_first) else None
    results.entropy = zeros(T) if see.entropy else None
    results.first = zeros() if see.sink and not has_own_first else None
    results.diagonals = zeros(max(0, T + S - 1)) if see.distance else None
    if see.top:
        k = min(see.top, S)
        results.top_weights = zeros(T, k)
        results.top_indices = torch.arange(k, device=q.device).expand(B, H, T, k).clone()
    return results


def add_block(weights: Tensor, rows: slice, low: int, bins: Bins | None, results: Results) -> None:
    """Add the weights of these rows and of the keys from `low` on to every sum asked for; those of padding become 0."""
    if results.text is not None:
        weights.masked_fill_(~results.text[..., rows, None], 0)
    high = low + weights.shape[-1]
    columns = None
    if bins is not None and results.map is not None:
        columns = _add_to_map(weights, rows, low, bins, results.map)
    if results.received is not None:
        results.received[..., low:high] += _sum_of_rows(weights if columns is None else columns)
    if results.first is not None and low == 0:
        results.first += weights[..., 0].sum(-1)
    if results.diagonals is not None:
        # The key `low` meets the last of these rows on this diagonal, counted from the lower left of the whole.
        start = low + (results.lse.shape[-1] - rows.stop)
        along = _sums_of_diagonals(weights)
        results.diagonals[..., start : start + along.shape[-1]] += along


def _add_to_map(weights: Tensor, rows: slice, low: int, bins: Bins, pooled: Tensor) -> Tensor:
    """Add a block to the sums of the map; returns it summed over the rows of each bin."""
    high = low + weights.shape[-1]
    first, last = rows.start // bins.high, (rows.stop - 1) // bins.high + 1
    columns = weights if bins.high == 1 else _sums_of_bins(weights, rows.start, bins.high)
    left, right = low // bins.wide, -(-high // bins.wide)
    padded = columns
    if low % bins.wide or high % bins.wide:
        padded = torch.nn.functional.pad(columns, (low - left * bins.wide, right * bins.wide - high))
    pooled[..., first:last, left:right] += padded.unflatten(-1, (right - left, bins.wide)).sum(-1)
    return columns


def _sums_of_bins(weights: Tensor, start: int, high: int) -> Tensor:
    """The sums over the rows of each bin: the end of one that began before, whole ones, the beginning of another."""
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


def _sum_of_rows(x: Tensor) -> Tensor:
    """The sum over the second last axis, as a product: half the time of `sum` on a block in the cache."""
    return x.new_ones(x.shape[-2]) @ x


def _sums_of_diagonals(weights: Tensor) -> Tensor:
    """Sums along the diagonals, lower left first: every row is moved by one against the next, then rows are summed."""
    *lead, height, width = weights.shape
    across = height + width - 1
    sheared = weights.new_zeros((*lead, height, across))
    step = (*sheared.stride()[:-2], across - 1, 1)
    sheared.as_strided(weights.shape, step, storage_offset=height - 1).copy_(weights)
    return _sum_of_rows(sheared)


def add_strongest(scores: Tensor, weights: Tensor, rows: slice, low: int, results: Results, S: int) -> None:
    """The strongest keys of these rows by scores, -inf where hidden; for who sees too few the first others, at 0."""
    assert results.top_indices is not None
    assert results.top_weights is not None
    k, width = results.top_indices.shape[-1], weights.shape[-1]
    places = _highest(scores, min(k, width))
    keys = places + low
    lacking = scores.gather(-1, places[..., -1:])[..., 0] == -torch.inf
    if width < k:
        keys = torch.nn.functional.pad(keys, (0, k - width))
        lacking = torch.ones_like(lacking)
    if lacking.any():
        # The first k keys on either side are enough: hidden ones, in their order among those within.
        before, after = min(low, k), min(S - low - width, k)
        places = _highest(torch.nn.functional.pad(scores[lacking], (before, after), value=-torch.inf), k)
        keys[lacking] = torch.where(places < before, places, places - before + low)
    places = keys - low
    within = (places >= 0) & (places < width)
    results.top_indices[..., rows, :] = keys
    results.top_weights[..., rows, :] = weights.gather(-1, places.clamp(0, width - 1)).masked_fill_(~within, 0)


def _highest(x: Tensor, k: int) -> Tensor:
    """Where the k highest numbers of each row stand, the higher first, of equal ones the earlier."""
    values, places = x.topk(min(k + 1, x.shape[-1]), dim=-1)
    # `topk` takes equal ones as they come: these rows, mostly none, are done again.
    equal = ~(values[..., :-1] > values[..., 1:]).all(-1)
    places = places[..., :k].contiguous()
    if equal.any():
        places[equal] = _first_highest(x[equal], values[equal][:, k - 1 : k], k)
    return places


def _first_highest(x: Tensor, least: Tensor, k: int) -> Tensor:
    """The same, whatever is equal; `least` is the lowest number that is taken."""
    above = x > least
    level = ~(above | (x < least))  # NaN too
    taken = above | (level & (level.cumsum(-1) <= k - above.sum(-1, keepdim=True)))  # k of each row
    places = taken.nonzero()[:, 1].view(-1, k)
    order = x.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices
    return places.gather(-1, order)


def finish(results: Results, see: See | None, bins: Bins | None, padding: Padding | None = None) -> Statistics:
    """The means that are asked for, once every block was added: over the queries that see something and are text."""
    if see is None:
        return Statistics()
    text = None if padding is None else padding.queries
    lse = without_rows(results.lse, text, -torch.inf)
    if results.map is not None:
        assert bins is not None
        average(results.map, lse, bins)
    count = who_looks(lse).sum(-1).clamp(min=1) if see.sink or see.distance else None
    top = None
    if results.top_indices is not None and results.top_weights is not None:
        top = top_of_text(results.top_indices, results.top_weights, text)
    first = results.first
    if see.sink and first is None:
        assert padding is not None
        assert results.received is not None
        first = at_first_keys(results.received, padding)
    return Statistics(
        map=results.map,
        lse=lse if see.lse or see.qk else None,
        entropy=None if results.entropy is None else without_rows(results.entropy, text, 0),
        received=results.received if see.received else None,
        top=top,
        sink=None if first is None or count is None else first / count,
        distance=None if results.diagonals is None or count is None else _distances(results, count, padding),
    )


def at_first_keys(received: Tensor, padding: Padding) -> Tensor:
    """What the first key of each text received, B H, of B H S."""
    first = padding.first_keys()
    if first is None:
        return received[..., :1].sum(-1)
    return received.gather(-1, first[:, None, None].expand(*received.shape[:2], 1))[..., 0]


def top_of_text(indices: Tensor, weights: Tensor, text: Tensor | None) -> Top:
    """The strongest keys, B H T k; for padding the first ones, at 0, as for queries that see nothing."""
    if text is None:
        return Top(indices, weights)
    unseen = torch.arange(indices.shape[-1], device=indices.device)
    return Top(torch.where(text[:, None, :, None], indices, unseen), without_rows(weights, text, 0, axes=1))


def who_looks(lse: Tensor) -> Tensor:
    """1 for each query that sees something, else 0."""
    return (lse != -torch.inf).to(lse.dtype)  # NaN counts as looking


def average(sums: Tensor, lse: Tensor, bins: Bins) -> None:
    """Make a map of sums, B H R C, one of means over the queries of each bin that see something."""
    padded = torch.nn.functional.pad(who_looks(lse), (0, bins.R * bins.high - lse.shape[-1]))
    sums /= padded.unflatten(-1, (bins.R, bins.high)).sum(-1).clamp(min=1)[..., None]


def _distances(results: Results, count: Tensor, padding: Padding | None) -> Tensor:
    assert results.diagonals is not None
    T = results.lse.shape[-1]
    S = results.diagonals.shape[-1] - T + 1
    if not T or not S:
        return count.new_zeros((*count.shape, distance_count(T, S)))
    offsets = None if padding is None else padding.offsets(T, S)
    if offsets is not None:
        far = (T - 1 + offsets[:, None] - torch.arange(T + S - 1, device=offsets.device)).abs()  # B diagonals
        edges = 2 ** torch.arange(distance_count(T, S) - 1, device=offsets.device)
        bins = torch.bucketize(far, edges, right=True)[:, None].expand_as(results.diagonals)
        shares = count.new_zeros((*count.shape, len(edges) + 1)).scatter_add_(-1, bins, results.diagonals)
        return shares / count[..., None]
    return torch.stack(by_distance(results.diagonals, S), dim=-1) / count[..., None]
