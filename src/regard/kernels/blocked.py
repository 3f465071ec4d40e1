"""Attention and its statistics in one pass over blocks of rows, and exact weights of any rectangle, in NumPy.

For each block: scores into a buffer (product, softcap, bias and mask), exponentials in place, the weighted mean of the
values; then the statistics in `see`, while the block is in the cache. The output is divided by the row sums at the end,
which are T × E numbers instead of T × S.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from regard.attention_call import AttentionCall
from regard.axes import distance_count
from regard.kernels.division import (
    KEYS_PER_MASK_BLOCK,
    Bins,
    block_of,
    cores,
    head_of,
    is_imprecise,
    row_blocks,
    rows_per_block,
    run_all,
    sums_by_distance,
    units_of_work,
)
from regard.masks import BoundMask
from regard.masks.padding import Padding
from regard.records import See, Statistics, Top

ROWS = 256
"""Rows in a block where there are few keys."""


@dataclass(frozen=True, slots=True)
class HeadInputs:
    """One head of one sample: queries, keys, values, and mask."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: np.floating
    mask: BoundMask | None
    bias: np.ndarray | None
    softcap: float | None

    @classmethod
    def of(cls, call: AttentionCall, b: int, h: int) -> "HeadInputs":
        """Head h of sample b. Keys and values are made contiguous: BLAS copies any other layout, once per block."""
        q, k, v = call.q, call.k, call.v
        exact = exact_dtype(q)
        g = h // (q.shape[1] // k.shape[1])
        return cls(
            q=q[b, h],
            k=np.ascontiguousarray(k[b, g], dtype=exact),
            v=np.ascontiguousarray(v[b, g], dtype=exact),
            scale=exact.type(call.scale),
            mask=None if call.bound is None else call.bound.pick(b, h),
            bias=None if call.bias is None else head_of(call.bias, b, h),
            softcap=call.softcap,
        )

    def reach(self, rows: slice) -> tuple[int, int]:
        return (0, self.k.shape[0]) if self.mask is None else self.mask.reach(rows)

    def scores(self, rows: slice, low: int, high: int, out: np.ndarray) -> np.ndarray:
        """The scores of these rows and the keys low … high, -inf where masked, written into `out`."""
        # Scaled before the product, as in the definition; C order, so that rounding does not depend on the layout.
        queries = np.ascontiguousarray(self.q[rows], dtype=self.k.dtype) * self.scale
        scores = np.matmul(queries, self.k[low:high].T, out=out)
        if self.softcap is not None:
            np.divide(scores, self.softcap, out=scores)
            np.tanh(scores, out=scores)
            np.multiply(scores, self.softcap, out=scores)
        if self.bias is not None:
            scores += block_of(self.bias, rows, slice(low, high))
        if self.mask is not None:
            mask_out(scores, self.mask, rows, low, high)
        return scores


def exact_dtype(x: np.ndarray) -> np.dtype:
    """The dtype of the computation: float64 for float64, float32 for the others."""
    return np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)


def mask_out(scores: np.ndarray, mask: BoundMask, rows: slice, low: int, high: int, value: float = -np.inf) -> None:
    """Write `value` where keys are masked for the rows."""
    for tile, visible in mask.partial_tiles(rows, low, high, KEYS_PER_MASK_BLOCK):
        part = scores[:, tile.start - low : tile.stop - low]
        if visible is False:
            part[...] = value
        else:
            np.copyto(part, value, where=~visible)


def shift_by_maximum(scores: np.ndarray) -> np.ndarray:
    """Subtract the maximum from each row in place and return it; a fully masked row keeps its -inf."""
    row_max = scores.max(axis=1)
    row_max[row_max == -np.inf] = 0
    scores -= row_max[:, None]
    return row_max


def rectangle(call: AttentionCall, lse: np.ndarray, rows: slice, cols: slice) -> np.ndarray:
    """The weights of rows × cols, B H rows cols: exp(score − LSE); lse is B H T. The values are not used.

    Where the LSE is so large that its rounding error matters, the softmax of these rows is recomputed over all keys.
    """
    B, H = call.q.shape[:2]
    weights = np.zeros((B, H, rows.stop - rows.start, cols.stop - cols.start), exact_dtype(call.q))
    if not weights.size:
        return weights
    with np.errstate(invalid="ignore", over="ignore"):
        for b, h in np.ndindex(B, H):
            head = HeadInputs.of(call, b, h)
            shift = lse[b, h, rows].astype(weights.dtype)
            if is_imprecise(shift, np.finfo(shift.dtype).eps):
                _recompute_weights(head, rows, cols, weights[b, h])
                weights[b, h, shift == -np.inf] = 0
                continue
            scores = head.scores(rows, cols.start, cols.stop, weights[b, h])
            # A fully masked or padding query has an LSE of -inf and no weights.
            scores -= np.where(shift == -np.inf, np.inf, shift)[:, None]
            np.exp(scores, out=scores)
    return weights


def _recompute_weights(head: HeadInputs, rows: slice, cols: slice, weights: np.ndarray) -> None:
    """Write the same weights into `weights`, computed without the LSE."""
    S = head.k.shape[0]
    for block in row_blocks(rows.start, rows.stop, rows_per_block(rows.stop - rows.start, S, ROWS)):
        exps = head.scores(block, 0, S, np.empty((block.stop - block.start, S), weights.dtype))
        shift_by_maximum(exps)
        np.exp(exps, out=exps)
        total = exps.sum(1, keepdims=True)
        weights[block.start - rows.start : block.stop - rows.start] = exps[:, cols] / np.where(total == 0, 1, total)


MIN_SCORES_FOR_THREADS = 2**21
"""Number of scores above which threads are faster."""

SAFE_EXPONENT = 40.0
"""Scores up to this size need no row maximum subtracted: exp(±40) and its sums are well inside the range of float32."""


@dataclass(slots=True)
class Results:
    """The arrays that blocks write into, with axis B·H first."""

    out: np.ndarray
    lse: np.ndarray
    max_score: np.ndarray | None
    map: np.ndarray | None
    entropy: np.ndarray | None
    top: Top | None


@dataclass(slots=True)
class SumsOverRows:
    """Sums over the rows of a head: weight received by each key, by the first key, and on each diagonal."""

    received: np.ndarray | None
    first: np.ndarray | None
    diagonals: np.ndarray | None

    @classmethod
    def of(cls, see: See | None, *shape: int, T: int, S: int, dtype: np.dtype) -> "SumsOverRows":
        if see is None:
            return cls(None, None, None)
        return cls(
            np.zeros((*shape, S), dtype) if see.received else None,
            np.zeros((*shape, 1), dtype) if see.sink else None,
            np.zeros((*shape, max(0, T + S - 1)), dtype) if see.distance else None,
        )

    def add(self, n: int, part: "SumsOverRows") -> None:
        """Add the sums of a piece of head n."""
        for name in ("received", "first", "diagonals"):
            if getattr(self, name) is not None:
                getattr(self, name)[n] += getattr(part, name)


def attention(call: AttentionCall) -> tuple[np.ndarray, Statistics]:
    """Output B H T Ev and the statistics in `see`, for finite arrays."""
    see, padding = call.see, call.padding
    B, H, T, _ = call.q.shape
    S, Ev = call.v.shape[2:]
    bins = Bins.of(T, S, see)
    results = _allocate(call.q, S, Ev, bins, see)
    totals_dtype = results.lse.dtype
    summed = see
    if see is not None and padding is not None and padding.keys is not None:
        # The first key differs by sample: its sum is taken from what all keys received.
        summed = replace(see, received=see.received or see.sink, sink=False)
    is_text = None if padding is None else padding.queries
    sums = SumsOverRows.of(summed, B * H, T=T, S=S, dtype=totals_dtype)
    step = rows_per_block(
        T, S if call.bound is None else call.bound.max_reach(ROWS), ROWS, bins.height if bins else None
    )
    if T and S and B * H:

        def work(unit: tuple[int, int, int]) -> SumsOverRows:
            n, start, stop = unit
            piece_sums = SumsOverRows.of(summed, T=T, S=S, dtype=totals_dtype)
            # An overflow here comes from visible, huge inputs; NaN is the reference's result for them.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                head = HeadInputs.of(call, *divmod(n, H))
                rows = row_blocks(start, stop, step)
                _one_head(head, n, rows, bins, results, piece_sums, None if is_text is None else is_text[n // H])
            return piece_sums

        units = units_of_work(B * H, T, max(step, bins.height) if bins else step, cores())
        single_thread = B * H * T * S < MIN_SCORES_FOR_THREADS
        # Two pieces of one head may run at once, so each has its own sums; adding them in order is reproducible.
        for (n, _, _), part in zip(units, map(work, units) if single_thread else run_all(work, units), strict=True):
            sums.add(n, part)
    return results.out.reshape(B, H, T, Ev), _finish(results, sums, B, H, see, bins, padding)


def _one_head(
    head: HeadInputs,
    n: int,
    blocks: Iterable[slice],
    bins: Bins | None,
    results: Results,
    sums: SumsOverRows,
    is_text: np.ndarray | None,
) -> None:
    """Compute some rows of one head in blocks. Rows where `is_text` (T) is False are padding: they are in no sum."""
    S, exact = head.k.shape[0], head.k.dtype
    ranges = [(rows, *head.reach(rows)) for rows in blocks]
    largest = max((rows.stop - rows.start) * (high - low) for rows, low, high in ranges)
    # New memory for every block would cost page faults. Entropy needs scores and exponentials at once.
    buffers = [np.empty(largest, exact) for _ in range(1 if results.entropy is None else 2)]
    needs_shift = not _small_scores(head)
    for rows, low, high in ranges:
        if low == high:
            continue
        shape = (rows.stop - rows.start, high - low)
        scores, exps = (buffers[i][: shape[0] * shape[1]].reshape(shape) for i in (0, -1))
        head.scores(rows, low, high, out=scores)
        if results.top is not None:  # before exponentials overwrite the scores, which differ where those round to 0
            results.top.indices[n, rows] = _top_keys(scores, results.top.indices.shape[-1], low, S)
        if results.max_score is not None:
            results.max_score[n, rows] = scores.max(axis=1)
        row_max = shift_by_maximum(scores) if needs_shift else 0.0
        np.exp(scores, out=exps)
        total = exps.sum(axis=1)
        log_total = np.log(total)
        inverse = 1 / np.where(total == 0, 1, total)
        results.lse[n, rows] = log_total + row_max
        results.out[n, rows] = _weighted_values(exps, inverse, head.v[low:high])
        if results.entropy is not None:
            mean_score = _mean_score(exps, scores, head.mask, rows, low) * inverse
            results.entropy[n, rows] = np.where(total == 0, 0, log_total - mean_score)
        if is_text is not None:
            inverse = np.where(is_text[rows], inverse, 0)
        columns = None
        if bins is not None and results.map is not None:
            columns = _add_to_map(exps, inverse, rows, low, bins, results.map[n])
        _add_to_sums(exps, inverse, rows, low, columns, sums, T=results.lse.shape[1])
        if results.top is not None:
            results.top.weights[n, rows] = _weights_at(results.top.indices[n, rows], exps, inverse, low)


def _weighted_values(exps: np.ndarray, inverse: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The weighted mean of the values, divided after the product (T × Ev numbers), unless that sum overflows."""
    out = (exps @ values) * inverse[:, None]
    return out if np.isfinite(out).all() else (exps * inverse[:, None]) @ values


def _mean_score(exps: np.ndarray, scores: np.ndarray, mask: BoundMask | None, rows: slice, low: int) -> np.ndarray:
    """The sum of exponential times score in each row; an exponential of 0 adds 0 even where its score is -inf."""
    if mask is not None:
        mask_out(scores, mask, rows, low, low + scores.shape[1], 0.0)
    summed = np.vecdot(exps, scores)
    if np.isnan(summed).any():  # a bias may mask as well
        np.copyto(scores, 0, where=scores == -np.inf)
        summed = np.vecdot(exps, scores)
    return summed


def _add_to_map(
    exps: np.ndarray, inverse: np.ndarray, rows: slice, low: int, bins: Bins, pooled: np.ndarray
) -> np.ndarray:
    """Add a block to the map; returns its weights summed over the rows of each bin."""
    high = low + exps.shape[1]
    first, last = rows.start // bins.height, (rows.stop - 1) // bins.height + 1
    edges = np.maximum(np.arange(first, last) * bins.height - rows.start, 0)
    if bins.height == 1:
        row_sums = exps * inverse[:, None]
    else:
        # One product of a row of inverse sums with the rows of a bin normalises and adds them in one pass.
        row_sums = np.empty((last - first, exps.shape[1]), exps.dtype)
        for i, (start, stop) in enumerate(pairwise([*edges, exps.shape[0]])):
            np.matmul(inverse[start:stop], exps[start:stop], out=row_sums[i])
    columns = np.arange(low // bins.width, -(-high // bins.width))
    sums = row_sums if bins.width == 1 else np.add.reduceat(row_sums, np.maximum(columns * bins.width - low, 0), axis=1)
    pooled[first:last, columns[0] : columns[-1] + 1] += sums
    return row_sums


def _add_to_sums(
    exps: np.ndarray, inverse: np.ndarray, rows: slice, low: int, columns: np.ndarray | None, sums: SumsOverRows, T: int
) -> None:
    """Add a block to the sums of its head; `columns` are its weights summed over the rows of each bin, if computed."""
    if sums.received is not None:
        sums.received[low : low + exps.shape[1]] += inverse @ exps if columns is None else columns.sum(axis=0)
    if sums.first is not None and low == 0:
        sums.first += inverse @ exps[:, 0]
    if sums.diagonals is not None:
        height, width = exps.shape
        across = height + width - 1
        # Each row is shifted by one against the next; then a column is a diagonal, the lower left one first.
        sheared = np.zeros(height * across, exps.dtype)
        size = exps.itemsize
        shifted = np.lib.stride_tricks.as_strided(sheared[height - 1 :], exps.shape, ((across - 1) * size, size))
        np.multiply(exps, inverse[:, None], out=shifted)
        start = low + T - rows.stop
        sums.diagonals[start : start + across] += sheared.reshape(height, across).sum(axis=0)


def _top_keys(scores: np.ndarray, k: int, low: int, S: int) -> np.ndarray:
    """The top k keys of each row by score, the earlier of equal ones; a row with too few gets the first masked keys.

    A score of -inf is masked, as is every key outside the block.
    """
    width = scores.shape[1]
    keys = np.zeros((len(scores), k), np.intp)
    positions = _top_positions(scores, min(k, width))
    keys[:, : positions.shape[1]] = positions + low
    too_few = (np.take_along_axis(scores, positions[:, -1:], axis=1)[:, 0] == -np.inf) | (width < k)
    if too_few.any():
        # The first k masked keys on either side are enough, in order with those in the block.
        before, after = min(low, k), min(S - low - width, k)
        positions = _top_positions(np.pad(scores[too_few], ((0, 0), (before, after)), constant_values=-np.inf), k)
        keys[too_few] = np.where(positions < before, positions, positions - before + low)
    return keys


def _top_positions(x: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k highest numbers of each row, highest first, the earlier of equal ones first."""
    least = np.partition(x, -k, axis=1)[:, -k, None]
    selected = ~(x < least)  # includes NaN
    tied = np.count_nonzero(selected, axis=1) > k
    if tied.any():
        above = x[tied] > least[tied]
        level = selected[tied] & ~above
        selected[tied] = above | (level & (level.cumsum(axis=1) <= k - above.sum(axis=1, keepdims=True)))
    positions = np.nonzero(selected)[1].reshape(-1, k)
    order = np.argsort(-np.take_along_axis(x, positions, axis=1), axis=1, kind="stable")
    return np.take_along_axis(positions, order, axis=1)


def _weights_at(keys: np.ndarray, exps: np.ndarray, inverse: np.ndarray, low: int) -> np.ndarray:
    """The weights of each row at `keys`; 0 for keys outside the block."""
    positions, width = keys - low, exps.shape[1]
    in_block = (positions >= 0) & (positions < width)
    found = np.take_along_axis(exps, positions.clip(0, width - 1), axis=1)
    return np.where(in_block, found, 0) * inverse[:, None]


def _small_scores(head: HeadInputs) -> bool:
    """Whether no score can be large, by the Cauchy–Schwarz inequality: then the row maximum need not be subtracted.

    Only without a mask: otherwise a masked key would affect how visible keys are rounded.
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
        max_score=np.full((heads, T), -np.inf, exact) if see is not None and see.max_score else None,
        map=np.zeros((heads, bins.R, bins.C), exact) if bins else None,
        entropy=np.zeros((heads, T), exact) if see is not None and see.entropy else None,
        top=None if k is None else Top(np.tile(np.arange(k), (heads, T, 1)), np.zeros((heads, T, k), exact)),
    )


def _finish(
    results: Results, sums: SumsOverRows, B: int, H: int, see: See | None, bins: Bins | None, padding: Padding | None
) -> Statistics:
    if see is None:
        return Statistics()
    if padding is not None and padding.queries is not None:
        _clear_padding_rows(results, ~np.repeat(padding.queries, H, axis=0))
    attending = (results.lse != -np.inf).astype(results.lse.dtype)  # NaN counts as attending
    if results.map is not None and results.map.size:
        assert bins is not None
        counts = np.add.reduceat(attending, np.arange(bins.R) * bins.height, axis=-1)
        results.map /= np.maximum(counts, 1)[..., None]

    def heads(x: np.ndarray | None) -> np.ndarray | None:
        return None if x is None else x.reshape(B, H, *x.shape[1:])

    top = results.top
    count = np.maximum(attending.sum(-1), 1)
    return Statistics(
        map=heads(results.map),
        lse=heads(results.lse) if see.lse or see.qk else None,
        max_score=heads(results.max_score),
        entropy=heads(results.entropy),
        received=heads(sums.received) if see.received else None,
        top=None if top is None else Top(heads(top.indices), heads(top.weights)),
        sink=heads(_first_key_sums(sums, H, padding) / count) if see.sink else None,
        distance=None if sums.diagonals is None else heads(_distances(sums.diagonals, count, attending, H, padding)),
    )


def _clear_padding_rows(results: Results, rows: np.ndarray) -> None:
    """Set padding rows, (B·H) T, to the values of fully masked rows."""
    results.lse[rows] = -np.inf
    if results.max_score is not None:
        results.max_score[rows] = -np.inf
    if results.entropy is not None:
        results.entropy[rows] = 0
    if results.top is not None:
        results.top.indices[rows] = np.arange(results.top.indices.shape[-1])
        results.top.weights[rows] = 0


def _first_key_sums(sums: SumsOverRows, H: int, padding: Padding | None) -> np.ndarray:
    """The weight received by the first key of each text, B·H."""
    if sums.first is not None:
        return sums.first[:, 0]
    assert padding is not None
    assert sums.received is not None
    keys = padding.first_keys()
    assert keys is not None
    return np.take_along_axis(sums.received, np.repeat(keys, H)[:, None], axis=1)[:, 0]


def _distances(
    diagonals: np.ndarray, count: np.ndarray, attending: np.ndarray, H: int, padding: Padding | None
) -> np.ndarray:
    T = attending.shape[-1]
    S = diagonals.shape[-1] - T + 1
    if not T or not S or not len(count):
        return np.zeros((len(count), distance_count(T, S)), diagonals.dtype)
    offsets = None if padding is None else padding.offsets(T, S)
    if offsets is None:
        return np.stack(sums_by_distance(diagonals, S), axis=-1) / count[:, None]
    rows = [sums_by_distance(row, S, int(offsets[n // H])) for n, row in enumerate(diagonals)]
    return np.array(rows, diagonals.dtype) / count[:, None]
