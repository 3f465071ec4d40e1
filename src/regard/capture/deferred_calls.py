"""Calls of a watched model whose statistics are computed later, many as one: `DeferredCalls`.

For a short text on a GPU the computation takes less time than its preparation in Python, which the model has to wait
for. So a call only leaves a copy of its q and k, and its LSE. Calls of the same shape are computed as one batch when
the Trace is read, when the next watch of the thread begins, or when the copies exceed a limit. A copy is one operator,
and no later write of the model can change it.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.capture.operators import CAUSAL, CAUSAL_FROM_FIRST, CapturedCall
from regard.dispatch.observation import observe_attention
from regard.records import Record, See, Top
from regard.statistics_table import STATISTICS

DEVICES = ("cuda",)
"""Where calls are deferred: a CPU computes while Python waits, so there nothing is gained."""

MAX_CALL, MAX_KEPT = 2**26, 2**28
"""The largest number of bytes of q and k, of one call that is deferred and of all calls that wait."""


class _Batch(NamedTuple):
    """What calls must have in common to be computed together."""

    q: torch.Size
    k: torch.Size
    dtype: torch.dtype
    device: torch.device
    scale: float
    mask: int
    lse: torch.dtype | None
    see: int


class CallBatch:
    """Calls that are computed together: q and k of each are copied to a slot of a buffer, B (H + G) T E.

    count   the number of calls that are expected
    most    the number of bytes that buffers for calls to come may have
    """

    def __init__(self, captured: CapturedCall, see: See, count: int, most: int) -> None:
        q, k = captured.q, captured.k
        self._most = most
        self._call, self.see = captured._replace(q=q[..., :0], k=k[..., :0], v=k[..., :0], lse=None), see
        self._shape = (q.shape[0], q.shape[1] + k.shape[1], *q.shape[2:])
        self.bytes = q.nbytes + k.nbytes
        """Of one call."""
        self._count = count
        self._buffers: list[Tensor] = []
        self._free: list[Tensor] = []
        self._slots: list[Tensor] = []
        self._lse: list[Tensor] = []
        self.positions: list[int] = []
        """Those of the records in the Trace."""
        self.is_open = True
        """Whether more calls may be added."""

    def add(self, q: Tensor, k: Tensor, lse: Tensor | None, position: int) -> None:
        """Keep what the record at `position` needs."""
        # Tensors of inference mode cannot be written outside of it.
        if not self._free or self._free[-1].is_inference() != torch.is_inference_mode_enabled():
            self._allocate(q)
        slot = self._free.pop()
        torch.cat((q, k), 1, out=slot)
        self._slots.append(slot)
        self.positions.append(position)
        if lse is not None:
            self._lse.append(lse)

    def _allocate(self, like: Tensor) -> None:
        used = len(self._slots)
        count = min(max(self._count - used, used, 1), max(1, self._most // self.bytes - used))
        buffer = like.new_empty((count, *self._shape))
        self._buffers.append(buffer)
        self._free = [*buffer.unbind()][::-1]

    def compute(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The missing fields of the records, by position: the calls are computed as the samples of one."""
        (B, H), n = self._call.q.shape[:2], len(self._slots)
        qk = self._buffers[0][:n].flatten(0, 1) if len(self._buffers) == 1 else torch.cat(self._slots)
        lse = None if not self._lse else self._lse[0] if n == 1 else torch.cat(self._lse)
        q, k = qk[:, :H], qk[:, H:]
        call = AttentionCall(q, k, k, self._call.scale, mask=self._call.mask, see=self.see)
        record = observe_attention(call, lse)
        fields = _fields(record)
        if n == 1:
            yield self.positions[0], fields
            return
        parts: dict[str, Any] = {}
        for name, value in fields.items():
            if value is not None:
                parts[name] = list(zip(*(x.split(B) for x in value), strict=True)) if name == "top" else value.split(B)
        for at, position in enumerate(self.positions):
            found = {name: each[at] for name, each in parts.items()}
            if "top" in found:
                found["top"] = Top(*found["top"])
            yield position, found


class DeferredCalls:
    """The deferred calls of a Trace."""

    def __init__(self) -> None:
        self._batches: dict[_Batch, CallBatch] = {}
        self.bytes = self._count = 0
        """The bytes of the copies that wait, and the number of calls so far."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __len__(self) -> int:
        """The number of calls that were deferred so far, also those that are computed."""
        return self._count

    def defer(
        self, captured: CapturedCall, see: See, position: int, count: Callable[[], int], available: int | None = None
    ) -> CallBatch | None:
        """Keep what the record at `position` needs. Returns None if it should be computed at once.

        count       returns the number of such calls that are expected
        available   the number of bytes that all copies may have; None without a budget
        """
        q, k, mask, lse = captured.q, captured.k, captured.mask, captured.lse
        if q.device.type not in DEVICES or captured.output is not None or see.qk or see.values:
            return None
        is_known = mask is None or mask is CAUSAL or mask is CAUSAL_FROM_FIRST
        if not is_known or captured.bias is not None or captured.softcap is not None:
            return None
        B, H, T, E = q.shape
        same = k.shape[0] == B and k.shape[2] == T and k.shape[3] == E and k.dtype == q.dtype
        need = q.nbytes + k.nbytes
        if not (same and B and H and T) or need > MAX_CALL or (available is not None and self.bytes + need > available):
            return None
        sums = None if lse is None else lse.dtype
        key = _Batch(q.shape, k.shape, q.dtype, q.device, captured.scale, id(mask), sums, id(see))
        batch = self._batches.get(key)
        if batch is None:  # with the request itself, so that its id is not reused
            batch = self._batches[key] = CallBatch(captured, see, count(), MAX_KEPT if available is None else 0)
        self.add(batch, captured.q, captured.k, lse, position)
        return batch

    def add(self, batch: CallBatch, q: Tensor, k: Tensor, lse: Tensor | None, position: int) -> None:
        """Add one more call to a batch."""
        batch.add(q, k, lse, position)
        self.bytes += batch.bytes
        self._count += 1

    @property
    def are_many(self) -> bool:
        """Whether what is kept exceeds the limit, so that it should be computed."""
        return self.bytes > MAX_KEPT

    def compute(self, failed: Callable[[Exception, list[int]], None]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Compute all deferred calls: the missing fields of the records, by position.

        failed   receives the first error, and the positions of the records that stay without statistics
        """
        batches, self._batches, self.bytes = [*self._batches.values()], {}, 0
        first, left = None, list[int]()
        for batch in batches:
            batch.is_open = False
            if not batch.positions:  # its first call could not be kept
                continue
            try:
                yield from list(batch.compute())
            except Exception as error:
                first, left = first or error, [*left, *batch.positions]
        if first is not None:
            failed(first, sorted(left))


def _fields(record: Record) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in STATISTICS if one.computed}
