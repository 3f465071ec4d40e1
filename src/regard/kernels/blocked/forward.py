"""Attention and its statistics in one pass over blocks of rows.

Per block: scores into a buffer, exponentials in place, the values' mean; while the block is still in the cache,
what `see` asks for. The output is divided by the row sums at the end, T × E numbers instead of T × S.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from regard.axes import distance_count
from regard.kernels.blocked.scores import Head, exact_dtype, hide
from regard.kernels.blocked.workers import run_all
from regard.kernels.tiles import Bins, by_distance, cores, row_blocks, rows_per_block, units_of_work
from regard.masks import BoundMask
from regard.padding import Padding
from regard.records import See, Statistics, Top

ROWS = 256
"""Rows at a time, where keys are few."""

WORTH_THREADS = 2**21
"""Scores from which on handing work to threads pays for itself."""

SAFE_EXPONENT = 40.0
"""Scores this small need no maximum taken off: exp(±40) is far from the ends of float32, and so are sums of it."""


@dataclass(slots=True)
class Results:
    """The arrays that blocks write into: B·H first."""

    out: np.ndarray
    lse: np.ndarray
    map: np.ndarray | None
    entropy: np.ndarray | None
    top: Top | None


@dataclass(slots=True)
class Sums:
    """What every row of a head adds to: what keys received, what the first one did, and the weight on each diagonal."""

    received: np.ndarray | None
    first: np.ndarray | None
    diagonals: np.ndarray | None

    @classmethod
    def of(cls, see: See | None, *shape: int, T: int, S: int, dtype: np.dtype) -> "Sums":
        if see is None:
            return cls(None, None, None)
        return cls(
            np.zeros((*shape, S), dtype) if see.received else None,
            np.zeros((*shape, 1), dtype) if see.sink else None,
            np.zeros((*shape, max(0, T + S - 1)), dtype) if see.distance else None,
        )

    def add(self, n: int, part: "Sums") -> None:
        """The sums of a piece of head n."""
        for name in ("received", "first", "diagonals"):
            if getattr(self, name) is not None:
                getattr(self, name)[n] += getattr(part, name)


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    *,
    mask: BoundMask | None = None,
    bias: np.ndarray | None = None,
    scale: float,
    softcap: float | None = None,
    see: See | None = None,
    padding: Padding | None = None,
) -> tuple[np.ndarray, Statistics]:
    """Output B H T Ev and the statistics that `see` asks for. q B H T E, k B G S E, v B G S Ev, all finite."""
    B, H, T, _ = q.shape
    S = k.shape[2]
    bins = Bins.of(T, S, see)
    results = _allocate(q, S, v.shape[-1], bins, see)
    totals_dtype = results.lse.dtype
    summed = see
    if see is not None and padding is not None and padding.keys is not None:
        # Another key is the first in each sample: its share is found among what all keys received.
        summed = replace(see, received=see.received or see.sink, sink=False)
    text = None if padding is None else padding.queries
    sums = Sums.of(summed, B * H, T=T, S=S, dtype=totals_dtype)
    step = rows_per_block(T, S if mask is None else mask.widest(ROWS), ROWS, bins.high if bins else None)
    if T and S and B * H:

        def work(unit: tuple[int, int, int]) -> Sums:
            n, start, stop = unit
            own = Sums.of(summed, T=T, S=S, dtype=totals_dtype)
            # What may overflow here is visible and huge, and NaN is what the reference says of it.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                head = Head.of(q, k, v, *divmod(n, H), mask=mask, bias=bias, scale=scale, softcap=softcap)
                rows = row_blocks(start, stop, step)
                _one_head(head, n, rows, bins, results, own, None if text is None else text[n // H])
            return own

        units = units_of_work(B * H, T, max(step, bins.high) if bins else step, cores())
        alone = B * H * T * S < WORTH_THREADS
        # Two pieces of one head may run at once, so each brings its own sums; adding in order is repeatable.
        for (n, _, _), part in zip(units, map(work, units) if alone else run_all(work, units), strict=True):
            sums.add(n, part)
    return results.out.reshape(B, H, T, v.shape[-1]), _finish(results, sums, B, H, see, bins, padding)


def _one_head(
    head: Head,
    n: int,
    blocks: Iterable[slice],
    bins: Bins | None,
    results: Results,
    sums: Sums,
    text: np.ndarray | None,
) -> None:
    """Some rows of one head, block by block. Rows where `text`, T, is False are padding, and in no sum."""
    S, exact = head.k.shape[0], head.k.dtype
    reached = [(rows, *head.reach(rows)) for rows in blocks]
    largest = max((rows.stop - rows.start) * (high - low) for rows, low, high in reached)
    # Fresh memory for every block would be paid for in page faults. Entropy needs scores and powers at once.
    buffers = [np.empty(largest, exact) for _ in range(1 if results.entropy is None else 2)]
    shifted = not _small_scores(head)
    for rows, low, high in reached:
        if low == high:
            continue
        shape = (rows.stop - rows.start, high - low)
        scores, powers = (buffers[i][: shape[0] * shape[1]].reshape(shape) for i in (0, -1))
        head.scores(rows, low, high, out=scores)
        if results.top is not None:  # before powers are written over scores, which tell apart what they round to 0
            results.top.indices[n, rows] = _strongest(scores, results.top.indices.shape[-1], low, S)
        highest = shift_by_maximum(scores) if shifted else 0.0
        np.exp(scores, out=powers)
        total = powers.sum(axis=1)
        logarithm = np.log(total)
        share = 1 / np.where(total == 0, 1, total)
        results.lse[n, rows] = logarithm + highest
        results.out[n, rows] = _weighted_values(powers, share, head.v[low:high])
        if results.entropy is not None:
            mean_score = _mean_score(powers, scores, head.mask, rows, low) * share
            results.entropy[n, rows] = np.where(total == 0, 0, logarithm - mean_score)
        if text is not None:
            share = np.where(text[rows], share, 0)
        columns = None
        if bins is not None and results.map is not None:
            columns = _add_to_map(powers, share, rows, low, bins, results.map[n])
        _add_to_sums(powers, share, rows, low, columns, sums, T=results.lse.shape[1])
        if results.top is not None:
            results.top.weights[n, rows] = _weights_at(results.top.indices[n, rows], powers, share, low)


def _weighted_values(powers: np.ndarray, share: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of the values: divided last, T × Ev numbers, unless values are so large that the sum overflows."""
    out = (powers @ values) * share[:, None]
    return out if np.isfinite(out).all() else (powers * share[:, None]) @ values


def _mean_score(powers: np.ndarray, scores: np.ndarray, mask: BoundMask | None, rows: slice, low: int) -> np.ndarray:
    """The sum of power times score in each row, where a power of 0 counts nothing, though its score be -inf."""
    if mask is not None:
        hide(scores, mask, rows, low, low + scores.shape[1], 0.0)
    summed = np.vecdot(powers, scores)
    if np.isnan(summed).any():  # a bias may hide as well
        np.copyto(scores, 0, where=scores == -np.inf)
        summed = np.vecdot(powers, scores)
    return summed


def shift_by_maximum(scores: np.ndarray) -> np.ndarray:
    """Take the maximum off each row, in place, and return it; a row that sees nothing keeps its -inf."""
    highest = scores.max(axis=1)
    highest[highest == -np.inf] = 0
    scores -= highest[:, None]
    return highest


def _add_to_map(
    powers: np.ndarray, share: np.ndarray, rows: slice, low: int, bins: Bins, pooled: np.ndarray
) -> np.ndarray:
    """Add a block to the map; returns its weights summed over the rows of each bin."""
    high = low + powers.shape[1]
    first, last = rows.start // bins.high, (rows.stop - 1) // bins.high + 1
    edges = np.maximum(np.arange(first, last) * bins.high - rows.start, 0)
    if bins.high == 1:
        profile = powers * share[:, None]
    else:
        # One product of a row of shares with the rows of a bin weighs and adds them in a single reading.
        profile = np.empty((last - first, powers.shape[1]), powers.dtype)
        for i, (start, stop) in enumerate(pairwise([*edges, powers.shape[0]])):
            np.matmul(share[start:stop], powers[start:stop], out=profile[i])
    columns = np.arange(low // bins.wide, -(-high // bins.wide))
    sums = profile if bins.wide == 1 else np.add.reduceat(profile, np.maximum(columns * bins.wide - low, 0), axis=1)
    pooled[first:last, columns[0] : columns[-1] + 1] += sums
    return profile


def _add_to_sums(
    powers: np.ndarray, share: np.ndarray, rows: slice, low: int, columns: np.ndarray | None, sums: Sums, T: int
) -> None:
    """Add a block to what its head sums up; `columns` are its weights summed over some rows, where that is done."""
    if sums.received is not None:
        sums.received[low : low + powers.shape[1]] += share @ powers if columns is None else columns.sum(axis=0)
    if sums.first is not None and low == 0:
        sums.first += share @ powers[:, 0]
    if sums.diagonals is not None:
        height, width = powers.shape
        across = height + width - 1
        # Every row is moved by one against the next; then a column is a diagonal, the lower left one first.
        sheared = np.zeros(height * across, powers.dtype)
        size = powers.itemsize
        moved = np.lib.stride_tricks.as_strided(sheared[height - 1 :], powers.shape, ((across - 1) * size, size))
        np.multiply(powers, share[:, None], out=moved)
        start = low + T - rows.stop
        sums.diagonals[start : start + across] += sheared.reshape(height, across).sum(axis=0)


def _strongest(scores: np.ndarray, k: int, low: int, S: int) -> np.ndarray:
    """The keys of the k highest scores of each row, of equal ones the earlier; who sees too few gets the first others.

    -inf is hidden, as is every key outside of the block.
    """
    width = scores.shape[1]
    keys = np.zeros((len(scores), k), np.intp)
    places = _highest(scores, min(k, width))
    keys[:, : places.shape[1]] = places + low
    lacking = (np.take_along_axis(scores, places[:, -1:], axis=1)[:, 0] == -np.inf) | (width < k)
    if lacking.any():
        # The first k keys on either side are enough: hidden ones, in their order among those within.
        before, after = min(low, k), min(S - low - width, k)
        places = _highest(np.pad(scores[lacking], ((0, 0), (before, after)), constant_values=-np.inf), k)
        keys[lacking] = np.where(places < before, places, places - before + low)
    return keys


def _highest(x: np.ndarray, k: int) -> np.ndarray:
    """Where the k highest numbers of each row stand, the higher first, of equal ones the earlier."""
    least = np.partition(x, -k, axis=1)[:, -k, None]
    taken = ~(x < least)  # NaN too
    crowded = np.count_nonzero(taken, axis=1) > k
    if crowded.any():
        above = x[crowded] > least[crowded]
        level = taken[crowded] & ~above
        taken[crowded] = above | (level & (level.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True)))
    places = np.nonzero(taken)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(x, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def _weights_at(keys: np.ndarray, powers: np.ndarray, share: np.ndarray, low: int) -> np.ndarray:
    """The weights of each row's keys; of those outside of the block 0."""
    places, width = keys - low, powers.shape[1]
    within = (places >= 0) & (places < width)
    found = np.take_along_axis(powers, places.clip(0, width - 1), axis=1)
    return np.where(within, found, 0) * share[:, None]


def _small_scores(head: Head) -> bool:
    """Whether no score can be large, by Cauchy and Schwarz: then the row maximum need not be taken off.

    Asked only where nothing is hidden: otherwise a hidden key would decide how its neighbours are rounded.
    """
    if head.mask is not None or head.bias is not None or head.softcap is not None:
        return False
    longest = [float(np.vecdot(x, x, dtype=head.k.dtype).max()) for x in (head.q, head.k)]
    return longest[0] * longest[1] * float(head.scale) ** 2 < SAFE_EXPONENT**2


def _allocate(q: np.ndarray, S: int, Ev: int, bins: Bins | None, see: See | None) -> Results:
    heads, T, exact = q.shape[0] * q.shape[1], q.shape[2], exact_dtype(q)
    k = min(see.top, S) if see is not None and see.top else None
    return Results(
        out=np.zeros((heads, T, Ev), q.dtype),
        lse=np.full((heads, T), -np.inf, exact),
        map=np.zeros((heads, bins.R, bins.C), exact) if bins else None,
        entropy=np.zeros((heads, T), exact) if see is not None and see.entropy else None,
        top=None if k is None else Top(np.tile(np.arange(k), (heads, T, 1)), np.zeros((heads, T, k), exact)),
    )


def _finish(
    results: Results, sums: Sums, B: int, H: int, see: See | None, bins: Bins | None, padding: Padding | None
) -> Statistics:
    if see is None:
        return Statistics()
    if padding is not None and padding.queries is not None:
        _leave_out(results, ~np.repeat(padding.queries, H, axis=0))
    looking = (results.lse != -np.inf).astype(results.lse.dtype)  # NaN counts as looking
    if results.map is not None and results.map.size:
        assert bins is not None
        counts = np.add.reduceat(looking, np.arange(bins.R) * bins.high, axis=-1)
        results.map /= np.maximum(counts, 1)[..., None]

    def heads(x: np.ndarray | None) -> np.ndarray | None:
        return None if x is None else x.reshape(B, H, *x.shape[1:])

    top = results.top
    count = np.maximum(looking.sum(-1), 1)
    return Statistics(
        map=heads(results.map),
        lse=heads(results.lse) if see.lse or see.qk else None,
        entropy=heads(results.entropy),
        received=heads(sums.received) if see.received else None,
        top=None if top is None else Top(heads(top.indices), heads(top.weights)),
        sink=heads(_first(sums, H, padding) / count) if see.sink else None,
        distance=None if sums.diagonals is None else heads(_distances(sums.diagonals, count, looking, H, padding)),
    )


def _leave_out(results: Results, rows: np.ndarray) -> None:
    """The rows that are padding, (B·H) T, as rows that see nothing."""
    results.lse[rows] = -np.inf
    if results.entropy is not None:
        results.entropy[rows] = 0
    if results.top is not None:
        results.top.indices[rows] = np.arange(results.top.indices.shape[-1])
        results.top.weights[rows] = 0


def _first(sums: Sums, H: int, padding: Padding | None) -> np.ndarray:
    """What the first key of each text received, B·H."""
    if sums.first is not None:
        return sums.first[:, 0]
    assert padding is not None
    assert sums.received is not None
    keys = padding.first_keys()
    assert keys is not None
    return np.take_along_axis(sums.received, np.repeat(keys, H)[:, None], axis=1)[:, 0]


def _distances(
    diagonals: np.ndarray, count: np.ndarray, looking: np.ndarray, H: int, padding: Padding | None
) -> np.ndarray:
    T = looking.shape[-1]
    S = diagonals.shape[-1] - T + 1
    if not T or not S:
        return np.zeros((len(count), distance_count(T, S)), diagonals.dtype)
    offsets = None if padding is None else padding.offsets(T, S)
    if offsets is None:
        return np.stack(by_distance(diagonals, S), axis=-1) / count[:, None]
    rows = [by_distance(row, S, int(offsets[n // H])) for n, row in enumerate(diagonals)]
    return np.array(rows, diagonals.dtype) / count[:, None]
