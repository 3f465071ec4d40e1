"""What is kept of a text that is written step by step, so that its rows can be put together afterwards.

Of each call its queries, and the keys that it brought; the keys of a step are those of all calls before it. Keeping
each step's whole cache would grow with the square of the text.

What is made of it can wait, where a step is one plain row: the statistics of many rows are made at a time. One by one
they would cost as much as the attention that they are about, while the model's own weights sweep everything else out of
the processor's caches. Nobody can tell: who looks at the Trace waits until they are made.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.axes import attention_sizes, bin_width
from regard.capture.cache_tracking import Keys, stayed
from regard.capture.captured import Caught
from regard.capture.isolated import Aside
from regard.dispatch.call import Call
from regard.dispatch.torch_backends import rectangle
from regard.functional.statistics import distance, entropy, strongest
from regard.kernels.chunked.observe import rows_at_once
from regard.records import Record, Rectangle, See, Step
from regard.trace import Trace

AT_ONCE = 2**20
"""Weights that are made together: 4 MiB."""


class Row(NamedTuple):
    """One token: its query B H 1 E, its LSE, and the keys that it sees, the first `S` after so many `calls`."""

    q: Tensor
    lse: Tensor
    scale: float
    S: int
    keys: Keys
    calls: int

    def rectangle(self, rows: slice, cols: slice) -> Tensor:
        """Its exact weights."""
        known = self.keys.until(self.calls)[:, :, : self.S]
        sizes = attention_sizes(self.q.shape, known.shape, known.shape)
        return rectangle(Call(self.q, known, known[..., :0], sizes, self.scale), self.lse, rows, cols)


class Steps:
    """The keys of each module, over the calls of the text that is being written."""

    def __init__(self) -> None:
        self._keys: dict[str, Keys] = {}
        self._marks: dict[str, Tensor] = {}
        """One number of each key of a module's last call, B S."""

    def begin(self, name: str) -> None:
        """What the module computes next is another text."""
        self._keys.pop(name, None)
        self._marks.pop(name, None)

    def row(self, name: str, caught: Caught, step: Step) -> Row | None:
        """One more token of a text that only grew, as what can wait; None for whatever is not as simple as that."""
        q, k, lse = caught.q, caught.k, caught.lse
        keys, marks, S = self._keys.get(name), self._marks.get(name), k.shape[2]
        plain = caught.mask is None and caught.bias is None and caught.softcap is None
        if not plain or q.shape[2] > 1 or lse is None or lse.dtype != q.dtype or not k.is_cpu:
            return None
        if keys is None or marks is None or not keys.only_grew or not step.start == keys.total == S - 1:
            return None
        now = _marks(k)
        # That the leader's keys are what they were is known already; another layer's may be kept in another way.
        if not stayed(step.parents) or not torch.equal(now.narrow(1, 0, S - 1), marks):
            return None
        self._marks[name] = now
        keys.add(step, _copy(k.narrow(2, S - 1, 1)))
        return Row(_copy(q), lse.clone(), caught.scale, S, keys, len(keys))

    def remembered(self, name: str, caught: Caught, record: Record, step: Step | None) -> Record:
        """The record, with exact weights from its queries and the keys of all calls before it."""
        self._marks[name] = _marks(caught.k)
        keys = self._keys.setdefault(name, Keys())
        B, _, T, S = record.shape
        start, parents = step or (0, ())
        if not len(keys) or start > keys.total:  # what came before was not kept, but is still in the cache
            keys = self._keys[name] = Keys()
            first = max(0, start + T - S)
            whole = record.kept.get("k", caught.k)[:, :, : start + T - first]
            keys.add(Step(first, tuple(range(B))), whole if "k" in record.kept else _copy(whole))
        else:
            end = min(start + T, S)
            keys.add(Step(start, parents or tuple(range(B))), _copy(caught.k[:, :, end - T : end]))
        return record if record.has_weights else record.changed(rectangle=_rectangle(caught, record, keys))

    def across(self, name: str, caught: Caught, record: Record) -> Record:
        """The same where the keys stay what they are, as those of a source do while its translation is written."""
        keys = self._keys.get(name)
        if keys is None or not torch.equal(keys.until(1), caught.k):
            keys = self._keys[name] = Keys()
            keys.add(Step(0, tuple(range(record.shape[0]))), _copy(caught.k))
        return record if record.has_weights else record.changed(rectangle=_rectangle(caught, record, keys))


def _rectangle(caught: Caught, record: Record, keys: Keys) -> Rectangle:
    """Exact weights of one call, from copies of what it had that others have not."""
    count, S, lse = len(keys), record.shape[-1], record.lse
    assert lse is not None
    q, scale, softcap = _copy(caught.q), caught.scale, caught.softcap
    mask = None if caught.mask is None else deepcopy(caught.mask)
    bias = None if caught.bias is None else _copy(caught.bias)

    def weights(rows: slice, cols: slice) -> Tensor:
        known = keys.until(count)
        known = known[:, :, max(0, known.shape[2] - S) :]  # a cache may forget the oldest
        room = S - known.shape[2]  # and may have places that nobody has written to
        known = torch.nn.functional.pad(known, (0, 0, 0, room)) if room else known
        sizes = attention_sizes(q.shape, known.shape, known.shape)
        bound = None if mask is None else mask.bind(sizes.lead, sizes.T, S, q)
        call = Call(q, known, known[..., :0], sizes, scale, mask=mask, bound=bound, bias=bias, softcap=softcap)
        return rectangle(call, lse, rows, cols)

    return weights


def _marks(k: Tensor) -> Tensor:
    """One number of each key, B S. `select` and `narrow` here, since slices of several axes take thrice as long."""
    return k.select(3, 0).select(1, 0).clone()


def _copy(x: Tensor) -> Tensor:
    return x.clone() if not x.requires_grad else x.detach().clone()


# --- later ------------------------------------------------------------------------------------------------


class Waiting(NamedTuple):
    """A row, what is asked of it, and its place in the Trace."""

    row: Row
    see: See
    place: int


class Later:
    """The rows of one watch that wait, by the keys that they look at."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._waiting: dict[Keys, list[Waiting]] = {}
        trace.before_looking = self.settle

    def add(self, row: Row, see: See) -> None:
        """The row of the record that the Trace gets next."""
        waiting = self._waiting.setdefault(row.keys, [])
        size = row.q.shape[0] * row.q.shape[1] * len(waiting) * row.S
        if waiting and (size > AT_ONCE or row.scale != waiting[-1].row.scale):
            self._settle(waiting)
            waiting.clear()
        waiting.append(Waiting(row, see, len(self._trace)))

    def settle(self) -> None:
        """Make whatever waits."""
        if self._waiting:
            with Aside():
                while self._waiting:
                    self._settle(self._waiting.popitem()[1])

    def _settle(self, waiting: list[Waiting]) -> None:
        for place, fields in _made(waiting):
            self._trace.complete(place, fields)


def _made(waiting: list[Waiting]) -> Iterator[tuple[int, dict[str, Any]]]:
    """What the records lack, by their places. The rows see the same keys, each a few more than the one before."""
    last = waiting[-1].row
    q = torch.cat([one.row.q for one in waiting], 2)
    weights = rows_at_once(q, last.keys.halves(last.calls), last.scale, [one.row.S for one in waiting])  # B H n S
    sinks = weights[..., 0].clone()
    entropies = entropy(weights) if any(one.see.entropy for one in waiting) else None
    pooled: dict[int, Tensor] = {1: weights}  # by the width of bins
    for at, (row, see, place) in enumerate(waiting):
        own = weights[:, :, at : at + 1, : row.S]
        wide = 0 if see.map is None else bin_width(row.S, see.map)
        if wide and wide not in pooled:
            pooled[wide] = _in_bins(weights, wide)
        yield (
            place,
            {
                "map": pooled[wide][:, :, at : at + 1, : -(-row.S // wide)] if wide else None,
                "lse": row.lse if see.lse else None,
                "entropy": entropies[..., at : at + 1] if see.entropy and entropies is not None else None,
                "received": own[:, :, 0] if see.received else None,
                "top": strongest(own, see.top) if see.top else None,
                "sink": sinks[..., at] if see.sink else None,
                "distance": distance(own) if see.distance else None,
                "rectangle": None if wide == 1 else row.rectangle,  # a map of one bin per weight is the weights
            },
        )


def _in_bins(weights: Tensor, wide: int) -> Tensor:
    """Rows of weights, summed over the keys of each bin."""
    C = -(-weights.shape[-1] // wide)
    return torch.nn.functional.pad(weights, (0, C * wide - weights.shape[-1])).unflatten(-1, (C, wide)).sum(-1)
