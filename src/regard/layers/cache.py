"""Key/value caches of one attention layer, so that each token of a text is read once.

NoCache stores nothing; GrowingCache grows as needed; StaticCache has a fixed number of columns at a fixed address,
as CUDA graphs require. None of them handles masks.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from regard.errors import DtypeError

KeysAndValues = tuple[Tensor, Tensor]
"""k and v, each B G S E."""


class LayerCache(Protocol):
    """`update` stores the newest keys and values and returns all of them."""

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues: ...


class NoCache:
    """Returns the newest keys and values and stores nothing."""

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        return k, v


NO_CACHE = NoCache()


class GrowingCache:
    """All keys and values so far. The capacity doubles when it is full, so that a step copies one column."""

    def __init__(self) -> None:
        self.length = 0
        self._buffers: KeysAndValues | None = None

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        start, stop = self.length, self.length + k.shape[2]
        if self._buffers is not None:
            _check_dtype(self._buffers[0], k)
        all_k, all_v = self._with_capacity(stop, k, v)
        all_k[:, :, start:stop] = k
        all_v[:, :, start:stop] = v
        self.length = stop
        return all_k[:, :, :stop], all_v[:, :, :stop]

    def _with_capacity(self, length: int, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._buffers is None or length > self._buffers[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = (k.new_empty(*k.shape[:2], size, k.shape[3]), v.new_empty(*v.shape[:2], size, v.shape[3]))
            if self._buffers is not None:
                for new, old in zip(grown, self._buffers, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._buffers = grown
        return self._buffers

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; rows may repeat."""
        if self._buffers is not None:
            self._buffers = (select_rows(self._buffers[0], rows), select_rows(self._buffers[1], rows))

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        self.length = length
        if length == 0:
            self._buffers = None  # the next input may have another number of samples


@dataclass(slots=True)
class WritePosition:
    """The columns that the newest keys and values go to, (T,): set once per step, shared by all layers."""

    columns: Tensor


class StaticCache:
    """`max_len` columns, allocated at once. The newest go to the columns of `position`, which the caller sets."""

    def __init__(self, position: WritePosition, max_len: int) -> None:
        self._position, self._max_len = position, max_len
        self._buffers: KeysAndValues | None = None

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._buffers is None or len(self._buffers[0]) != len(k):
            # Zeros: a column not yet written is masked, but a kernel may multiply it by a weight of 0.
            all_k, all_v = (x.new_zeros(*x.shape[:2], self._max_len, x.shape[3]) for x in (k, v))
            self._buffers = (all_k, all_v)
        _check_dtype(self._buffers[0], k)
        for buffer, new in zip(self._buffers, (k, v), strict=True):
            buffer.index_copy_(2, self._position.columns, new)
        return self._buffers

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; in the same memory if their number does not change."""
        if self._buffers is not None:
            k, v = self._buffers
            self._buffers = (select_rows_in_place(k, rows), select_rows_in_place(v, rows))


def _check_dtype(there: Tensor, new: Tensor) -> None:
    if there.dtype != new.dtype:
        raise DtypeError("cache-dtype", there=there.dtype, found=new.dtype)


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The rows of x in this order. By `index_select`, not indexing: `watch` tracks it to follow reordered samples."""
    return x.index_select(0, rows)


def select_rows_in_place(x: Tensor, rows: Tensor) -> Tensor:
    """The same, in the memory of x if the number of rows does not change: a captured step reads from there."""
    return x.copy_(select_rows(x, rows)) if len(rows) == len(x) else select_rows(x, rows)
