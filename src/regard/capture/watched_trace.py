"""The Trace of a watch, whose deferred statistics are computed on access; and the keys kept over decode steps.

Of a text that is generated step by step, each call keeps its queries and its new keys; the keys of a step are those of
all calls before it. Keeping the whole cache at each step would be quadratic in the length of the text. If a step is one
plain row, its statistics are computed for many rows at once: row by row they would cost as much as the attention
itself, because the model's weights evict everything else from the processor's caches. Whole calls wait in
`deferred_calls`.
"""

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall, WeightsFromQK
from regard.axes import bin_width
from regard.capture.deferred_calls import CallBatch, DeferredCalls
from regard.capture.operators import CapturedCall
from regard.capture.relevance import relevance_records
from regard.capture.token_labels import KeyHistory, keeps_order
from regard.capture.torch_internals import Isolated
from regard.dispatch.torch_backends import rectangle
from regard.errors import in_one_line
from regard.exact_weights import ExactWeights
from regard.functional.statistics import distance, entropy, top_keys
from regard.kernels.chunked.forward import scores_of_rows
from regard.masks import Mask
from regard.messages import Listed, say
from regard.records import DecodeStep, Record, See
from regard.trace import Trace

READ_LATER = ("cuda",)
"""Where a comparison is not read at once: it would wait for all that the device still computes."""

MAX_WEIGHTS = 2**20
"""The number of weights that are computed together: 4 MiB."""


@dataclass(slots=True, eq=False, repr=False)
class StepWeights(ExactWeights):
    """The exact weights of one call during a generation: from its own queries, and the keys of all calls before it.

    q B H T E, lse B H T, None only for a deferred row; the keys are the last `S` of `keys` after `calls` calls.
    `is_same`: whether the earlier keys are those of the calls before, where that is read only with a deferred row.
    """

    q: Tensor
    lse: Tensor | None
    scale: float
    S: int
    keys: KeyHistory
    calls: int
    mask: Mask | None = None
    bias: Tensor | None = None
    softcap: float | None = None
    is_same: Tensor | None = None

    def block(self, rows: slice, cols: slice) -> Tensor:
        q, S, text_keys = self.q, self.S, self.keys.until(self.calls)
        text_keys = text_keys[:, :, max(0, text_keys.shape[2] - S) :]  # a cache may drop the oldest keys
        empty = S - text_keys.shape[2]  # and may have unused positions
        text_keys = torch.nn.functional.pad(text_keys, (0, 0, 0, empty)) if empty else text_keys
        bound = None if self.mask is None else self.mask.bind(tuple(q.shape[:2]), q.shape[2], S, q)
        options: dict[str, Any] = {"bound": bound, "bias": self.bias, "softcap": self.softcap}
        assert self.lse is not None
        return rectangle(AttentionCall(q, text_keys, text_keys[..., :0], self.scale, **options), self.lse, rows, cols)

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        return (self.q,) if self.lse is None else (self.q, self.lse)


class DecodeHistory:
    """The keys of each module, over the calls of the text that is being generated."""

    def __init__(self) -> None:
        self._keys: dict[str, KeyHistory] = {}
        self._fingerprints: dict[str, Tensor] = {}
        """One number of each key of a module's last call, B S."""
        self._compared: set[str] = set()
        """Modules whose keys were compared with those of the call before, and were the same."""

    def reset(self, name: str) -> None:
        """Start a new text for a module."""
        self._keys.pop(name, None)
        self._fingerprints.pop(name, None)
        self._compared.discard(name)

    def row(self, name: str, captured: CapturedCall, step: DecodeStep) -> StepWeights | None:
        """The row of one token appended to a text, to be computed later; None if the call is not that simple."""
        q, k, lse = captured.q, captured.k, captured.lse
        keys, fingerprints, S = self._keys.get(name), self._fingerprints.get(name), k.shape[2]
        plain = captured.mask is None and captured.bias is None and captured.softcap is None
        if not plain or q.shape[2] > 1 or not (k.is_cuda or (k.is_cpu and lse is not None and lse.dtype == q.dtype)):
            return None
        if keys is None or fingerprints is None or not keys.only_appended or not step.start == keys.total == S - 1:
            return None
        now = _fingerprints(k)
        if not keeps_order(step.parents):
            return None
        # The leader's keys were compared already; another layer may store its keys in another way. On a GPU only the
        # first step waits for the result.
        is_same = None
        if k.device.type in READ_LATER and name in self._compared:
            is_same = (now.narrow(1, 0, S - 1) == fingerprints).all()
        elif not torch.equal(now.narrow(1, 0, S - 1), fingerprints):
            return None
        self._compared.add(name)
        self._fingerprints[name] = now
        keys.add(step, _copy(k.narrow(2, S - 1, 1)))
        # On a GPU some kernels return no LSE, and others that of the rounded q: there it is computed with the weights.
        known = lse.clone() if lse is not None and k.is_cpu else None
        return StepWeights(_copy(q), known, captured.scale, S, keys, len(keys), is_same=is_same)

    def with_history(self, name: str, captured: CapturedCall, record: Record, step: DecodeStep | None) -> Record:
        """The record, with exact weights from its queries and the keys of all calls before it."""
        self._fingerprints[name] = _fingerprints(captured.k)
        keys = self._keys.setdefault(name, KeyHistory())
        B, _, T, S = record.shape
        start, parents = step or (0, ())
        if not len(keys) or start > keys.total:  # earlier keys were not kept, but are still in the cache
            keys = self._keys[name] = KeyHistory()
            first = max(0, start + T - S)
            exact, end = record.exact, start + T - first
            own = exact.k[:, :, :end] if isinstance(exact, WeightsFromQK) else _copy(captured.k[:, :, :end])
            keys.add(DecodeStep(first, tuple(range(B))), own)
        else:
            end = min(start + T, S)
            keys.add(DecodeStep(start, parents or tuple(range(B))), _copy(captured.k[:, :, end - T : end]))
        return record if record.has_weights else record.changed(exact=_step_weights(captured, record, keys))

    def with_source_keys(self, name: str, captured: CapturedCall, record: Record) -> Record:
        """The same for keys that stay constant, as those of a source while its translation is generated."""
        keys = self._keys.get(name)
        if keys is None or not torch.equal(keys.until(1), captured.k):
            keys = self._keys[name] = KeyHistory()
            keys.add(DecodeStep(0, tuple(range(record.shape[0]))), _copy(captured.k))
        return record if record.has_weights else record.changed(exact=_step_weights(captured, record, keys))


def _step_weights(captured: CapturedCall, record: Record, keys: KeyHistory) -> StepWeights:
    """Exact weights of one call, from copies of its own tensors and the shared keys."""
    assert record.lse is not None
    return StepWeights(
        _copy(captured.q),
        record.lse,
        captured.scale,
        record.shape[-1],
        keys,
        len(keys),
        mask=None if captured.mask is None else deepcopy(captured.mask),
        bias=None if captured.bias is None else _copy(captured.bias),
        softcap=captured.softcap,
    )


def _fingerprints(k: Tensor) -> Tensor:
    """One number of each key, B S. `select` and `narrow`, because slices of several axes take three times as long."""
    return k.select(3, 0).select(1, 0).clone()


def _copy(x: Tensor) -> Tensor:
    return x.clone() if not x.requires_grad else x.detach().clone()


# --- deferred rows ----------------------------------------------------------------------------------------


class DeferredRow(NamedTuple):
    """A row, what to compute of it, and its position in the Trace."""

    row: StepWeights
    see: See
    position: int


class WatchedTrace(Trace):
    """The Trace of a watch: deferred rows are computed before any record is accessed."""

    def __init__(self) -> None:
        super().__init__()
        self._relevance = relevance_records
        self._deferred: dict[KeyHistory, list[DeferredRow]] = {}
        """By the keys that the rows attend to."""
        self.calls = DeferredCalls()
        """Whole calls."""
        self.note_error: Callable[[Exception, list[str]], None] = warn_of
        """Receives an error of ours and the names of the records that it left without statistics."""

    @property
    def _records(self) -> list[Record]:
        self.compute_deferred()
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies."""
        self.compute_deferred()
        return self.__dict__

    def end(self) -> None:
        """End the watch. What was deferred is computed when the Trace is read, or when the next watch begins."""
        self.note_error = warn_of
        if self.calls or self._deferred:
            _WAITING.trace = weakref.ref(self)

    def complete(self, at: int, fields: dict[str, Any]) -> None:
        """Fill in missing fields of a record."""
        self._made[at] = self._made[at].changed(**fields)

    def defer_call(
        self, captured: CapturedCall, see: See, count: Callable[[], int], available: int | None = None
    ) -> CallBatch | None:
        """Defer the call of the record that is appended next. Returns None if it should be computed at once.

        count       returns the number of such calls that are expected
        available   the number of bytes that all copies may have; None without a budget
        """
        is_full = available is not None and self.calls.bytes + captured.q.nbytes + captured.k.nbytes > available
        if self.calls.are_many or (self.calls and is_full):
            self._compute_calls()
        return self.calls.defer(captured, see, len(self._made), count, available)

    def repeat_call(self, batch: CallBatch, q: Tensor, k: Tensor, lse: Tensor | None) -> bool:
        """Add the call of the record that is appended next to a batch. Returns False if that is computed already."""
        self._compute_many()
        if batch.is_open:
            self.calls.add(batch, q, k, lse, len(self._made))
        return batch.is_open

    def _compute_many(self) -> None:
        if self.calls.are_many:
            self._compute_calls()

    def _compute_calls(self) -> None:
        with Isolated():
            for position, fields in self.calls.compute(self._note):
                self.complete(position, fields)

    def defer(self, row: StepWeights, see: See) -> None:
        """Defer the row of the record that is appended next."""
        waiting = self._deferred.setdefault(row.keys, [])
        size = row.q.shape[0] * row.q.shape[1] * len(waiting) * row.S
        if waiting and (size > MAX_WEIGHTS or row.scale != waiting[-1].row.scale):
            self._compute_rows(waiting)
            waiting.clear()
        waiting.append(DeferredRow(row, see, len(self)))

    def compute_deferred(self) -> None:
        """Compute all deferred rows and calls. An error leaves records without statistics, and is noted."""
        if self.calls:
            self._compute_calls()
        while self._deferred:
            self._compute_rows(self._deferred.popitem()[1])

    def _compute_rows(self, waiting: list[DeferredRow]) -> None:
        try:
            with Isolated():
                known = _rows_of_same_keys(waiting)
                for position, fields in _computed_rows(known) if known else ():
                    self.complete(position, fields)
            if len(known) < len(waiting):
                self._note(RuntimeError(say("watch-keys")), [one.position for one in waiting[len(known) :]])
        except Exception as error:
            self._note(error, [one.position for one in waiting])

    def _note(self, error: Exception, positions: list[int]) -> None:
        self.note_error(error, [self._made[at].name for at in positions])


class _Waiting(threading.local):
    """The last Trace of this thread whose statistics may not be computed yet."""

    trace: Callable[[], WatchedTrace | None] = staticmethod(lambda: None)


_WAITING = _Waiting()


def compute_last() -> None:
    """Compute the last Trace of this thread, if it was not read but is kept: so at most one holds copies."""
    last, _WAITING.trace = _WAITING.trace(), lambda: None
    if last is not None:
        last.compute_deferred()


def warn_of(error: Exception, names: list[str]) -> None:
    """Warn that statistics of these records could not be computed."""
    warnings.warn(say("watch-unseen", names=Listed.few(names, 3), reason=in_one_line(error)), stacklevel=2)


def _rows_of_same_keys(waiting: list[DeferredRow]) -> list[DeferredRow]:
    """The rows up to the first whose earlier keys had changed. Reads all flags in one transfer."""
    flags = [(at, one.row.is_same) for at, one in enumerate(waiting) if one.row.is_same is not None]
    if not flags:
        return waiting
    found = torch.stack([flag for _, flag in flags]).tolist()
    return waiting[: next((at for (at, _), is_same in zip(flags, found, strict=True) if not is_same), len(waiting))]


def _computed_rows(waiting: list[DeferredRow]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The missing fields of the records, by position. The rows share keys; each sees more than the one before."""
    last = waiting[-1].row
    q = torch.cat([one.row.q for one in waiting], 2)
    scores = scores_of_rows(q, last.keys.parts(last.calls), last.scale, [one.row.S for one in waiting])  # B H n S
    max_scores = scores.amax(-1) if any(one.see.max_score for one in waiting) else None
    weights = torch.softmax(scores, -1)
    sinks = weights[..., 0].clone()
    entropies = entropy(weights) if any(one.see.entropy for one in waiting) else None
    pooled: dict[int, Tensor] = {1: weights}  # by bin width
    sums = torch.logsumexp(scores, -1) if any(one.row.lse is None for one in waiting) else None  # B H n
    for at, (row, see, position) in enumerate(waiting):
        if row.lse is None and sums is not None:
            row.lse = sums[..., at : at + 1].clone()
        own = weights[:, :, at : at + 1, : row.S]
        wide = 0 if see.map is None else bin_width(row.S, see.map)
        if wide and wide not in pooled:
            pooled[wide] = _in_bins(weights, wide)
        yield (
            position,
            {
                "map": pooled[wide][:, :, at : at + 1, : -(-row.S // wide)] if wide else None,
                "lse": row.lse if see.lse else None,
                "max_score": max_scores[..., at : at + 1] if see.max_score and max_scores is not None else None,
                "entropy": entropies[..., at : at + 1] if see.entropy and entropies is not None else None,
                "received": own[:, :, 0] if see.received else None,
                "top": top_keys(own, see.top) if see.top else None,
                "sink": sinks[..., at] if see.sink else None,
                "distance": distance(own) if see.distance else None,
                "exact": None if wide == 1 else row,  # a map of one bin per weight holds the weights
            },
        )


def _in_bins(weights: Tensor, wide: int) -> Tensor:
    """Rows of weights, summed over the keys of each bin."""
    C = -(-weights.shape[-1] // wide)
    return torch.nn.functional.pad(weights, (0, C * wide - weights.shape[-1])).unflatten(-1, (C, wide)).sum(-1)
