"""Rectangles of one head at any zoom: exact weights pooled to a given size while they are computed, block by block.

`pooled_rectangle` computes; it holds one block of rows per thread, never the whole rectangle. `crop` answers from a
map whose bins are as fine as the cells that were asked for; `column_norms` are a second scale beside the weights.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from regard.arrays import is_tensor, to_numpy
from regard.attention_call import WeightsFromQK
from regard.exact_weights import ExactWeights
from regard.kernels.blocked import rectangle
from regard.kernels.division import SCORES_AT_A_TIME, run_all
from regard.records import Record
from regard.trace.pooling import bin_size, pool
from regard.views.exact_part import ExactPart
from regard.views.picture import Picture

FEWEST_BINS = 64
"""A region that has this many bins of the map along an axis is drawn from the map; a smaller one is computed."""


class Cells(NamedTuple):
    """A rectangle of one head in cells of `high` queries by `wide` keys; the last ones may cover fewer."""

    rows: slice
    cols: slice
    high: int
    wide: int
    cells: np.ndarray
    """R C: weights summed over the keys of a cell, averaged over its queries that are not fully masked."""
    attending: np.ndarray
    """R: the number of queries of each row that attend to any key of the text."""


def zoomed(drawn: Picture, rows: slice, cols: slice, most: tuple[int, int]) -> Cells:
    """A rectangle of the head in at most `most` cells: from the map where it is fine enough, else computed.

    A region that is drawn from the map is widened to whole bins. Without exact weights every region is.
    """
    bins = ((rows.stop - rows.start) // drawn.high, (cols.stop - cols.start) // drawn.wide)
    is_fine = drawn.high == drawn.wide == 1 or min(bins) >= FEWEST_BINS
    if is_fine or not drawn.record.has_weights:
        return crop(drawn, rows, cols, most)
    return pooled_rectangle(drawn.record, drawn.sample, drawn.head, rows, cols, most)


def crop(drawn: Picture, rows: slice, cols: slice, most: tuple[int, int]) -> Cells:
    """The part of the map that covers the rectangle, pooled to at most `most` cells."""
    T, S = drawn.record.shape[2:]
    (top, bottom), (left, right) = (
        (span.start // size, -(-span.stop // size)) for span, size in ((rows, drawn.high), (cols, drawn.wide))
    )
    cells, attending = drawn.cells[top:bottom, left:right], drawn.attending[top:bottom]
    high, wide = bin_size(bottom - top, most[0]), bin_size(right - left, most[1])
    if high > 1 or wide > 1:
        cells, attending = pool(cells, attending, high, wide)
    down = slice(top * drawn.high, min(T, bottom * drawn.high))
    across = slice(left * drawn.wide, min(S, right * drawn.wide))
    return Cells(down, across, high * drawn.high, wide * drawn.wide, cells, attending)


def pooled_rectangle(record: Record, sample: int, head: int, rows: slice, cols: slice, most: tuple[int, int]) -> Cells:
    """The exact weights of rows × cols of one head, pooled to at most `most` cells. Raises as `Record.weights`."""
    T, S = rows.stop - rows.start, cols.stop - cols.start
    high, wide = bin_size(T, most[0]), bin_size(S, most[1])
    R, C = -(-T // high), -(-S // wide)
    cells = np.zeros((R, C))
    weights_of = _block_function(record, sample, head)
    # Whole rows of cells at a time; a row of cells that is itself too large is computed in parts.
    step = max(1, SCORES_AT_A_TIME // max(1, S * high))
    wide_step = max(1, SCORES_AT_A_TIME // max(1, high * wide)) * wide

    def compute(first: int) -> None:
        down = slice(rows.start + first * high, min(rows.stop, rows.start + (first + step) * high))
        for left in range(0, S, wide_step):
            across = slice(cols.start + left, min(cols.stop, cols.start + left + wide_step))
            part = _summed(weights_of(down, across), high, wide)
            cells[first : first + step, left // wide : left // wide + part.shape[1]] = part

    run_all(compute, range(0, R, step))
    attending = attending_queries(record, sample, head, rows)
    counts = np.add.reduceat(attending.astype(np.int64), np.arange(0, T, high)) if T else np.zeros(0, np.int64)
    return Cells(rows, cols, high, wide, cells / np.maximum(counts, 1)[:, None], counts)


def attending_queries(record: Record, sample: int, head: int, rows: slice) -> np.ndarray:
    """Which queries attend to any key: by the LSE, else by their weights."""
    exact = record.exact
    lse = exact.lse if record.lse is None and exact is not None else record.lse
    if lse is not None:
        return np.asarray(to_numpy(lse.reshape(record.shape[:3])[sample, head, rows]) != -np.inf)
    weights_of = _block_function(record, sample, head)
    S = record.shape[3]
    step = max(1, SCORES_AT_A_TIME // max(1, S))
    parts = [
        weights_of(slice(at, min(rows.stop, at + step)), slice(0, S)).any(-1)
        for at in range(rows.start, rows.stop, step)
    ]
    return np.concatenate([np.zeros(0, bool), *parts])


def _block_function(record: Record, sample: int, head: int) -> Callable[[slice, slice], np.ndarray]:
    """A function that computes rows × cols of one head in NumPy."""
    if record.exact is None:
        return lambda rows, cols: np.asarray(to_numpy(record.weights(rows, cols, head)))[sample]
    alone = _in_numpy(record.exact.of_head(sample, head))
    return lambda rows, cols: np.asarray(to_numpy(alone.block(rows, cols)))[0, 0]


def _in_numpy(exact: ExactWeights) -> ExactWeights:
    """One head computed by NumPy where its tensors are in the memory of the CPU: no copy for each block."""
    if not isinstance(exact, WeightsFromQK) or not is_tensor(exact.q) or exact.q.device.type != "cpu":
        return exact
    bound = exact.bound
    if bound is not None and bound.only(0, 0) is not bound:
        return exact  # its mask holds tensors
    T, S = exact.q.shape[2], exact.k.shape[2]
    return replace(
        exact,
        q=to_numpy(exact.q),
        k=to_numpy(exact.k),
        lse=to_numpy(exact.lse),
        bias=None if exact.bias is None else to_numpy(exact.bias),
        bound=None if exact.mask is None else exact.mask.bind((1, 1), T, S),
        compute=rectangle,
    )


def _summed(weights: np.ndarray, high: int, wide: int) -> np.ndarray:
    """Sums over cells. Rows first: that pass reads memory in order and leaves `high` times fewer numbers."""
    if high > 1:
        weights = np.add.reduceat(weights, np.arange(0, weights.shape[0], high), axis=0)
    if wide > 1:
        weights = np.add.reduceat(weights, np.arange(0, weights.shape[1], wide), axis=1, dtype=np.float64)
    return weights


Norms = tuple[Literal["output", "value"], np.ndarray]


def column_norms(drawn: Picture) -> Norms | None:
    """The mean ‖v W_o‖ ("output") or ‖v‖ ("value") of the keys of each column; None where neither was kept."""
    record = drawn.record.whole if isinstance(drawn.record, ExactPart) else drawn.record
    cols = drawn.record.cols if isinstance(drawn.record, ExactPart) else slice(0, record.shape[3])
    own = None
    if isinstance(record.exact, WeightsFromQK) and record.exact.v is not None:
        v = record.exact.of_head(drawn.sample, drawn.head).v
        own = np.linalg.norm(np.asarray(to_numpy(v), np.float64)[0, 0], axis=-1)
    kept = None if record.value_norms is None else to_numpy(record.value_norms[drawn.sample, drawn.head])
    found = own if kept is None else np.asarray(kept, np.float64)
    if found is None or not len(found[cols]):
        return None
    is_value = kept is None or (own is not None and np.allclose(own, kept, rtol=1e-3, equal_nan=True))
    starts = np.arange(0, len(found[cols]), drawn.wide)
    sizes = np.diff(np.append(starts, len(found[cols])))
    means = np.add.reduceat(found[cols], starts) / sizes
    return "value" if is_value else "output", means.astype(np.float32)
