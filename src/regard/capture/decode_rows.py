"""What is kept of a text that is generated step by step, so that its rows can be recomputed later.

Each call keeps its queries and its new keys; the keys of a step are those of all calls before it. Keeping the whole
cache at each step would be quadratic in the length of the text.

If a step is one plain row, its statistics are deferred and computed for many rows at once. Row by row they would cost
as much as the attention itself, because the model's weights evict everything else from the processor's caches.
Reading the Trace computes the deferred rows first.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.axes import attention_sizes, bin_width
from regard.capture.cache_tracking import KeyHistory, keeps_order
from regard.capture.captured import CapturedCall
from regard.capture.torch_internals import Isolated
from regard.dispatch.call import AttentionCall
from regard.dispatch.torch_backends import rectangle
from regard.functional.statistics import distance, entropy, top_keys
from regard.kernels.chunked.observe import weights_of_rows
from regard.records import DecodeStep, Record, Rectangle, See
from regard.trace import Trace

MAX_WEIGHTS = 2**20
"""The number of weights that are computed together: 4 MiB."""


class DecodeRow(NamedTuple):
    """One token: its query B H 1 E, its LSE, and its keys: the first `S` of `keys` after `calls` calls."""

    q: Tensor
    lse: Tensor
    scale: float
    S: int
    keys: KeyHistory
    calls: int

    def rectangle(self, rows: slice, cols: slice) -> Tensor:
        """Its exact weights."""
        text_keys = self.keys.until(self.calls)[:, :, : self.S]
        sizes = attention_sizes(self.q.shape, text_keys.shape, text_keys.shape)
        return rectangle(AttentionCall(self.q, text_keys, text_keys[..., :0], sizes, self.scale), self.lse, rows, cols)


class DecodeHistory:
    """The keys of each module, over the calls of the text that is being generated."""

    def __init__(self) -> None:
        self._keys: dict[str, KeyHistory] = {}
        self._fingerprints: dict[str, Tensor] = {}
        """One number of each key of a module's last call, B S."""

    def reset(self, name: str) -> None:
        """Start a new text for a module."""
        self._keys.pop(name, None)
        self._fingerprints.pop(name, None)

    def row(self, name: str, captured: CapturedCall, step: DecodeStep) -> DecodeRow | None:
        """The row of one token appended to a text, to be computed later; None if the call is not that simple."""
        q, k, lse = captured.q, captured.k, captured.lse
        keys, fingerprints, S = self._keys.get(name), self._fingerprints.get(name), k.shape[2]
        plain = captured.mask is None and captured.bias is None and captured.softcap is None
        if not plain or q.shape[2] > 1 or lse is None or lse.dtype != q.dtype or not k.is_cpu:
            return None
        if keys is None or fingerprints is None or not keys.only_appended or not step.start == keys.total == S - 1:
            return None
        now = _fingerprints(k)
        # The leader's keys were compared already; another layer may store its keys in another way.
        if not keeps_order(step.parents) or not torch.equal(now.narrow(1, 0, S - 1), fingerprints):
            return None
        self._fingerprints[name] = now
        keys.add(step, _copy(k.narrow(2, S - 1, 1)))
        return DecodeRow(_copy(q), lse.clone(), captured.scale, S, keys, len(keys))

    def with_history(self, name: str, captured: CapturedCall, record: Record, step: DecodeStep | None) -> Record:
        """The record, with exact weights from its queries and the keys of all calls before it."""
        self._fingerprints[name] = _fingerprints(captured.k)
        keys = self._keys.setdefault(name, KeyHistory())
        B, _, T, S = record.shape
        start, parents = step or (0, ())
        if not len(keys) or start > keys.total:  # earlier keys were not kept, but are still in the cache
            keys = self._keys[name] = KeyHistory()
            first = max(0, start + T - S)
            whole = record.kept.get("k", captured.k)[:, :, : start + T - first]
            keys.add(DecodeStep(first, tuple(range(B))), whole if "k" in record.kept else _copy(whole))
        else:
            end = min(start + T, S)
            keys.add(DecodeStep(start, parents or tuple(range(B))), _copy(captured.k[:, :, end - T : end]))
        return record if record.has_weights else record.changed(rectangle=_rectangle(captured, record, keys))

    def with_source_keys(self, name: str, captured: CapturedCall, record: Record) -> Record:
        """The same for keys that stay constant, as those of a source while its translation is generated."""
        keys = self._keys.get(name)
        if keys is None or not torch.equal(keys.until(1), captured.k):
            keys = self._keys[name] = KeyHistory()
            keys.add(DecodeStep(0, tuple(range(record.shape[0]))), _copy(captured.k))
        return record if record.has_weights else record.changed(rectangle=_rectangle(captured, record, keys))


def _rectangle(captured: CapturedCall, record: Record, keys: KeyHistory) -> Rectangle:
    """Exact weights of one call, from copies of its own tensors and the shared keys."""
    count, S, lse = len(keys), record.shape[-1], record.lse
    assert lse is not None
    q, scale, softcap = _copy(captured.q), captured.scale, captured.softcap
    mask = None if captured.mask is None else deepcopy(captured.mask)
    bias = None if captured.bias is None else _copy(captured.bias)

    def weights(rows: slice, cols: slice) -> Tensor:
        text_keys = keys.until(count)
        text_keys = text_keys[:, :, max(0, text_keys.shape[2] - S) :]  # a cache may drop the oldest keys
        empty = S - text_keys.shape[2]  # and may have unused positions
        text_keys = torch.nn.functional.pad(text_keys, (0, 0, 0, empty)) if empty else text_keys
        sizes = attention_sizes(q.shape, text_keys.shape, text_keys.shape)
        bound = None if mask is None else mask.bind(sizes.lead, sizes.T, S, q)
        call = AttentionCall(
            q, text_keys, text_keys[..., :0], sizes, scale, mask=mask, bound=bound, bias=bias, softcap=softcap
        )
        return rectangle(call, lse, rows, cols)

    return weights


def _fingerprints(k: Tensor) -> Tensor:
    """One number of each key, B S. `select` and `narrow`, because slices of several axes take three times as long."""
    return k.select(3, 0).select(1, 0).clone()


def _copy(x: Tensor) -> Tensor:
    return x.clone() if not x.requires_grad else x.detach().clone()


# --- deferred rows ----------------------------------------------------------------------------------------


class DeferredRow(NamedTuple):
    """A row, what to compute of it, and its position in the Trace."""

    row: DecodeRow
    see: See
    position: int


class DeferredRows:
    """The deferred rows of one watch, by the keys that they attend to."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows: dict[KeyHistory, list[DeferredRow]] = {}
        trace.before_access = self.compute

    def add(self, row: DecodeRow, see: See) -> None:
        """Add the row of the record that is appended to the Trace next."""
        waiting = self._rows.setdefault(row.keys, [])
        size = row.q.shape[0] * row.q.shape[1] * len(waiting) * row.S
        if waiting and (size > MAX_WEIGHTS or row.scale != waiting[-1].row.scale):
            self._compute(waiting)
            waiting.clear()
        waiting.append(DeferredRow(row, see, len(self._trace)))

    def compute(self) -> None:
        """Compute all deferred rows."""
        if self._rows:
            with Isolated():
                while self._rows:
                    self._compute(self._rows.popitem()[1])

    def _compute(self, waiting: list[DeferredRow]) -> None:
        for position, fields in _computed(waiting):
            self._trace.complete(position, fields)


def _computed(waiting: list[DeferredRow]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The missing fields of the records, by position. The rows share keys; each sees more than the one before."""
    last = waiting[-1].row
    q = torch.cat([one.row.q for one in waiting], 2)
    weights = weights_of_rows(q, last.keys.parts(last.calls), last.scale, [one.row.S for one in waiting])  # B H n S
    sinks = weights[..., 0].clone()
    entropies = entropy(weights) if any(one.see.entropy for one in waiting) else None
    pooled: dict[int, Tensor] = {1: weights}  # by bin width
    for at, (row, see, position) in enumerate(waiting):
        own = weights[:, :, at : at + 1, : row.S]
        wide = 0 if see.map is None else bin_width(row.S, see.map)
        if wide and wide not in pooled:
            pooled[wide] = _in_bins(weights, wide)
        yield (
            position,
            {
                "map": pooled[wide][:, :, at : at + 1, : -(-row.S // wide)] if wide else None,
                "lse": row.lse if see.lse else None,
                "entropy": entropies[..., at : at + 1] if see.entropy and entropies is not None else None,
                "received": own[:, :, 0] if see.received else None,
                "top": top_keys(own, see.top) if see.top else None,
                "sink": sinks[..., at] if see.sink else None,
                "distance": distance(own) if see.distance else None,
                "rectangle": None if wide == 1 else row.rectangle,  # a map of one bin per weight holds the weights
            },
        )


def _in_bins(weights: Tensor, wide: int) -> Tensor:
    """Rows of weights, summed over the keys of each bin."""
    C = -(-weights.shape[-1] // wide)
    return torch.nn.functional.pad(weights, (0, C * wide - weights.shape[-1])).unflatten(-1, (C, wide)).sum(-1)
