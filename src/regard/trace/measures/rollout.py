"""Attention rollout: the attention of all layers multiplied, from the last down to what was read."""

from collections.abc import Sequence

import numpy as np

from regard.arrays import to_numpy
from regard.axes import part_of
from regard.errors import ArgumentError
from regard.memory import require
from regard.messages import Listed
from regard.padding import Padding, without_rows
from regard.records import WORTH_ASKING, Record
from regard.trace.from_weights import record_of
from regard.trace.measures.row_blocks import pieces
from regard.trace.trace import Trace


def attention_rollout(trace: Trace, rows: slice | range | None = None) -> Record:
    """How much of each token read is in each place of the last layer, if attention and residual mix half and half.

    Ã = ½ I + ½ mean over heads of A, and the rollout is Ã of the last layer times … times Ã of the first (Abnar and
    Zuidema 2020, section 3). Every record counts as a layer, in call order: choose one side, and one run, with
    `trace.select(kind=…)` or a slice. A query that sees nothing keeps what it has.

    `rows` are the places asked for: some rows of it are multiplied through all layers and nothing T × T is made. It
    knows nothing of values, feed-forward and norms: a bound on what could flow, not what did.

    >>> causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    >>> attention_rollout(Trace([record_of(causal), record_of(causal)])).weights()[0, 0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.44, 0.56, 0.  ],
           [0.32, 0.24, 0.44]], dtype=float32)
    """
    B, T = _sizes(trace)
    rows = part_of(rows, T)
    shape = (B, rows.stop - rows.start, T)
    if np.prod(shape) > WORTH_ASKING:
        require(8 * int(np.prod(shape)), key="rollout-too-large", shape=shape)  # what came, and what comes of it
    rolled = np.broadcast_to(np.eye(shape[1], T, rows.start, dtype=np.float32), shape)
    for record in reversed(list(trace)):
        rolled = _through(rolled, record)
    first = trace[0]
    queries = first.queries and [row[rows] for row in first.queries]
    padding = _padding(trace, rows)
    rolled = without_rows(rolled[:, None], None if padding is None else padding.queries, 0, axes=1)
    return record_of(rolled, queries, first.keys, name="rollout", kind=first.kind).changed(padding=padding)


def _padding(trace: Trace, rows: slice) -> Padding | None:
    """What the first record that knows of padding says, for these rows: they have no weights."""
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
    again = _called_again(trace.names)
    if again is not None:
        raise ArgumentError("rollout-runs", name=again)
    return wanted[0], wanted[1]


def _called_again(names: Sequence[str]) -> str | None:
    """The first record of a second run, which has the name of a layer with a number behind it.

    Where all have one name nobody can tell: these may be layers that were put together by hand.

    >>> _called_again(["h.0", "h.1", "h.0#1", "h.1#1"]), _called_again(["attention", "attention#1"])
    ('h.0#1', None)
    """
    layers = {name.partition("#")[0] for name in names}
    return next((name for name in names if "#" in name), None) if len(layers) > 1 else None


def _through(rolled: np.ndarray, record: Record) -> np.ndarray:
    """rolled (B r T) times Ã of one layer, its rows a block at a time."""
    found = rolled / 2
    for rows in pieces(record):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        mean = weights.mean(1, dtype=np.float32)  # B rows T
        sums = mean.sum(-1)
        if not np.isfinite(sums).all():
            row = rows.start + int(np.argwhere(~np.isfinite(sums))[0][1])
            raise ArgumentError("measure-not-finite", name=record.name, row=row)
        part = rolled[..., rows] / 2
        found += part @ mean
        found[..., rows] += part * (1 - sums)[:, None, :]  # of heads that see nothing
    return found
