"""Attention rollout: the product over layers of ½ I + ½ mean attention, or of I + mean relevance."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from regard.arrays import to_numpy
from regard.axes import bin_width, plain_slice
from regard.errors import ArgumentError
from regard.exact_weights import WeightsArray
from regard.images import RecordImage
from regard.memory import require_bytes
from regard.messages import Listed
from regard.padding import Padding, without_rows
from regard.records import CHECK_MEMORY_FROM, Record, See
from regard.trace.from_weights import record_from_weights
from regard.trace.measures.row_blocks import block_rows
from regard.trace.pooling import pool
from regard.trace.trace import Trace


def attention_rollout(trace: Trace, rows: slice | range | None = None) -> Record:
    """The share of each input token in each position of the last layer, if attention and residual count half each.

    Ã = ½ I + ½ mean over heads of A, and the rollout is Ã of the last layer times … times Ã of the first (Abnar and
    Zuidema 2020, section 3). Every record counts as a layer, in call order: choose one side, and one run, with
    `trace.select(kind=…)` or a slice. A fully masked query keeps its own input.

    `rows` are the positions to compute: only these rows are multiplied through all layers, without a T × T array.
    Values, feed-forward layers and norms are ignored, so rollout shows what could flow, not what did.

    Of a Trace of relevance (`Trace.relevance`), Ã = I + mean over heads of max(0, A ⊙ dA), and I is subtracted from the
    product (Chefer et al. 2021, "Generic attention-model explainability", section 3.1).

    >>> causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    >>> attention_rollout(Trace([record_from_weights(causal), record_from_weights(causal)])).weights()[0, 0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.44, 0.56, 0.  ],
           [0.32, 0.24, 0.44]], dtype=float32)
    """
    B, T = _sizes(trace)
    rows = plain_slice(rows, T)
    shape = (B, rows.stop - rows.start, T)
    if np.prod(shape) > CHECK_MEMORY_FROM:
        require_bytes(8 * int(np.prod(shape)), key="rollout-too-large", shape=shape)  # input and output of a product
    own = np.broadcast_to(np.eye(shape[1], T, rows.start, dtype=np.float32), shape)
    rolled, is_relevance = own, trace[0].rest == "relevance"
    for record in reversed(list(trace)):
        rolled = _multiplied(rolled, record, residual=1.0 if is_relevance else 0.5)
    first = trace[0]
    if is_relevance:
        return _relevance_record(first, rows, (rolled - own)[:, None])
    queries = first.query_tokens and [row[rows] for row in first.query_tokens]
    padding = _padding(trace, rows)
    rolled = without_rows(rolled[:, None], None if padding is None else padding.queries, 0, axes=1)
    return record_from_weights(rolled, queries, first.key_tokens, name="rollout", kind=first.kind).changed(
        padding=padding, images=_images(first, rows)
    )


def _images(first: Record, rows: slice) -> tuple[RecordImage, ...]:
    """The pictures of the layers; only as keys, where some queries are left out."""
    if rows == slice(0, first.shape[2]):
        return first.images
    return tuple(replace(one, side="keys") for one in first.images if one.is_on("keys"))


def _relevance_record(first: Record, rows: slice, rolled: np.ndarray) -> Record:
    """The rollout of relevance, whose rows have any sum. Padding has no relevance."""
    T, S = rolled.shape[2:]
    bins = See().map or max(T, S)
    ones = np.ones(rolled.shape[:3], int)
    found = Record(
        shape=(len(rolled), 1, T, S),
        name="rollout",
        kind=first.kind,
        rest="relevance",
        exact=WeightsArray(rolled),
        map=pool(rolled, ones, bin_width(T, bins), bin_width(S, bins))[0],
    )
    queries = first.query_tokens and [row[rows] for row in first.query_tokens]
    return found.with_tokens(queries, first.key_tokens).changed(images=_images(first, rows))


def _padding(trace: Trace, rows: slice) -> Padding | None:
    """The padding of these rows, from the first record where it is known."""
    found = next((record.padding for record in trace if record.padding is not None), None)
    if found is None:
        return None
    queries, keys = (None if x is None else to_numpy(x) for x in found)
    return Padding(None if queries is None else queries[:, rows], keys)


def _sizes(trace: Trace) -> tuple[int, int]:
    if not len(trace):
        raise ArgumentError("trace-empty")
    first = trace[0]
    wanted = (first.shape[0], *first.shape[2:])
    for record in trace:
        if record.kind != first.kind or record.kind == "cross":
            kinds = dict.fromkeys(each.kind for each in trace)
            raise ArgumentError("rollout-kinds", kinds=Listed(kinds))
        found = (record.shape[0], *record.shape[2:])
        if found != wanted or found[1] != found[2]:
            raise ArgumentError("rollout-shapes", first=first.name, wanted=wanted, name=record.name, found=found)
    again = _first_of_second_run(trace.names)
    if again is not None:
        raise ArgumentError("rollout-runs", name=again)
    return wanted[0], wanted[1]


def _first_of_second_run(names: Sequence[str]) -> str | None:
    """The first record of a second run, whose name is that of a layer with a number appended.

    None where all have one name: these may be layers that the caller combined.

    >>> _first_of_second_run(["h.0", "h.1", "h.0#1", "h.1#1"]), _first_of_second_run(["attention", "attention#1"])
    ('h.0#1', None)
    """
    layers = {name.partition("#")[0] for name in names}
    return next((name for name in names if "#" in name), None) if len(layers) > 1 else None


def _multiplied(rolled: np.ndarray, record: Record, residual: float) -> np.ndarray:
    """rolled (B r T) times Ã of one layer, its rows a block at a time; `residual` is the factor of I in Ã."""
    if residual == 1:
        return rolled + sum(rolled[..., rows] @ mean for rows, mean in _mean_rows(record))
    found = rolled / 2
    for rows, mean in _mean_rows(record):
        part = rolled[..., rows] / 2
        found += part @ mean
        found[..., rows] += part * (1 - mean.sum(-1))[:, None, :]  # from fully masked heads
    return found


def _mean_rows(record: Record) -> Iterator[tuple[slice, np.ndarray]]:
    """The mean over heads of the weights, B rows T, a block of rows at a time."""
    for rows in block_rows(record):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        mean = weights.mean(1, dtype=np.float32)
        sums = mean.sum(-1)
        if not np.isfinite(sums).all():
            row = rows.start + int(np.argwhere(~np.isfinite(sums))[0][1])
            raise ArgumentError("measure-not-finite", name=record.name, row=row)
        yield rows, mean
