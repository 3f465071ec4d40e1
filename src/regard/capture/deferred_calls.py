"""Short attention calls whose statistics are computed later, those of all layers together.

For a short text on a GPU the computation takes less time than its preparation in Python, which the model has to wait
for. So a call only leaves a copy of its q and k, and its LSE. Calls of the same shape are computed as one batch when
the Trace is read, when the watch ends, or when the copies exceed a limit. A copy is one operator, and no later write of
the model can change it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.capture.captured import CapturedCall
from regard.capture.operators import CAUSAL, CAUSAL_FROM_FIRST
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


class _Kept(NamedTuple):
    """A call: q and k in one tensor, B (H + G) T E, its LSE, and the position of its record in the Trace."""

    qk: Tensor
    lse: Tensor | None
    position: int


class DeferredCalls:
    """The deferred calls of a Trace."""

    def __init__(self) -> None:
        self._batches: dict[_Batch, tuple[CapturedCall, See, list[_Kept]]] = {}
        self._bytes = self._count = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def __len__(self) -> int:
        """The number of calls that were deferred so far, also those that are computed."""
        return self._count

    def defer(self, captured: CapturedCall, see: See, position: int) -> bool:
        """Keep what the record at `position` needs. Returns False if it should be computed at once."""
        q, k, mask, lse = captured.q, captured.k, captured.mask, captured.lse
        if q.device.type not in DEVICES or captured.output is not None or see.qk or see.values:
            return False
        is_known = mask is None or mask is CAUSAL or mask is CAUSAL_FROM_FIRST
        if not is_known or captured.bias is not None or captured.softcap is not None:
            return False
        B, H, T, E = q.shape
        same = k.shape[0] == B and k.shape[2] == T and k.shape[3] == E and k.dtype == q.dtype
        size = q.nbytes + k.nbytes
        if not (same and B and H and T) or size > MAX_CALL:
            return False
        sums = None if lse is None else lse.dtype
        key = _Batch(q.shape, k.shape, q.dtype, q.device, captured.scale, id(mask), sums, id(see))
        batch = self._batches.get(key)
        if batch is None:  # with the request itself, so that its id is not reused
            batch = self._batches[key] = captured._replace(q=q[..., :0], k=k[..., :0], v=k[..., :0], lse=None), see, []
        batch[2].append(_Kept(torch.cat((q, k), 1), lse, position))
        self._bytes += size
        self._count += 1
        return True

    @property
    def are_many(self) -> bool:
        """Whether what is kept exceeds the limit, so that it should be computed."""
        return self._bytes > MAX_KEPT

    def compute(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Compute all deferred calls: the missing fields of the records, by position."""
        while self._batches:
            key = next(iter(self._batches))
            yield from _computed(*self._batches[key])
            del self._batches[key]  # only now: `positions` names those that could not be computed
        self._bytes = 0

    @property
    def positions(self) -> list[int]:
        """The positions of the records that wait."""
        return sorted(one.position for *_, kept in self._batches.values() for one in kept)

    def drop(self) -> None:
        """Leave the deferred calls without statistics."""
        self._batches.clear()
        self._bytes = 0


def _computed(call: CapturedCall, see: See, kept: list[_Kept]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The missing fields of the records, by position: the calls are computed as the samples of one."""
    B, H = call.q.shape[:2]
    qk = kept[0].qk if len(kept) == 1 else torch.cat([one.qk for one in kept])
    sums = [one.lse for one in kept if one.lse is not None]
    lse = None if not sums else sums[0] if len(kept) == 1 else torch.cat(sums)
    q, k = qk[:, :H], qk[:, H:]
    record = observe_attention(q, k, k, lse=lse, mask=call.mask, scale=call.scale, see=see)
    if len(kept) == 1:
        yield kept[0].position, _fields(record)
        return
    parts: dict[str, Any] = {}
    for name, value in _fields(record).items():
        if value is not None:
            parts[name] = list(zip(*(x.split(B) for x in value), strict=True)) if name == "top" else value.split(B)
    for at, one in enumerate(kept):
        found = {name: each[at] for name, each in parts.items()}
        if "top" in found:
            found["top"] = Top(*found["top"])
        yield one.position, found


def _fields(record: Record) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in STATISTICS if one.computed}
