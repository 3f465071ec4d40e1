"""What one attention remembers of its keys and values, so that a text is read once and not once a token.

Uncached remembers nothing; Growing whatever it is given; Static a fixed number of columns, in memory that never
moves, as graphs on a GPU want it. None of them knows about masks.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from regard.errors import DtypeError

KeysAndValues = tuple[Tensor, Tensor]
"""B G S E twice."""


class LayerCache(Protocol):
    """Given the newest keys and values, it gives all that there are."""

    def extended(self, k: Tensor, v: Tensor) -> KeysAndValues: ...


class Uncached:
    """The newest are all there are."""

    def extended(self, k: Tensor, v: Tensor) -> KeysAndValues:
        return k, v


UNCACHED = Uncached()


class Growing:
    """All keys and values so far. Room for twice as many is made when it runs out, so that a step copies one column."""

    def __init__(self) -> None:
        self.length = 0
        self._room: KeysAndValues | None = None

    def extended(self, k: Tensor, v: Tensor) -> KeysAndValues:
        start, stop = self.length, self.length + k.shape[2]
        if self._room is not None:
            _check_dtype(self._room[0], k)
        k_room, v_room = self._with_room_for(stop, k, v)
        k_room[:, :, start:stop] = k
        v_room[:, :, start:stop] = v
        self.length = stop
        return k_room[:, :, :stop], v_room[:, :, :stop]

    def _with_room_for(self, length: int, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._room is None or length > self._room[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = (k.new_empty(*k.shape[:2], size, k.shape[3]), v.new_empty(*v.shape[:2], size, v.shape[3]))
            if self._room is not None:
                for new, old in zip(grown, self._room, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._room = grown
        return self._room

    def select(self, rows: Tensor) -> None:
        """The samples in this order, repeated or dropped."""
        if self._room is not None:
            self._room = (moved(self._room[0], rows), moved(self._room[1], rows))

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        self.length = length
        if length == 0:
            self._room = None  # what is read next may have other samples


@dataclass(slots=True)
class Place:
    """Where the newest columns go, (T,): the same for all layers, set once a step."""

    columns: Tensor


class Static:
    """`max_len` columns from the start. The newest go where `place`, which someone else sets, says."""

    def __init__(self, place: Place, max_len: int) -> None:
        self._place, self._max_len = place, max_len
        self._room: KeysAndValues | None = None

    def extended(self, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._room is None or len(self._room[0]) != len(k):
            # Zeros: a column not yet written is hidden, but a kernel may multiply it with a weight of 0.
            k_room, v_room = (x.new_zeros(*x.shape[:2], self._max_len, x.shape[3]) for x in (k, v))
            self._room = (k_room, v_room)
        _check_dtype(self._room[0], k)
        for whole, new in zip(self._room, (k, v), strict=True):
            whole.index_copy_(2, self._place.columns, new)
        return self._room

    def select(self, rows: Tensor) -> None:
        """The samples in this order; where there are as many as before, in the same memory."""
        if self._room is not None:
            self._room = (in_place(self._room[0], rows), in_place(self._room[1], rows))


def _check_dtype(there: Tensor, new: Tensor) -> None:
    if there.dtype != new.dtype:
        raise DtypeError("cache-dtype", there=there.dtype, found=new.dtype)


def moved(x: Tensor, rows: Tensor) -> Tensor:
    """The rows of x in this order. Not by indexing: `watch` listens for this, to know whose text goes on where."""
    return x.index_select(0, rows)


def in_place(x: Tensor, rows: Tensor) -> Tensor:
    """The same, in the memory of x where there are as many: a captured step reads from there."""
    return x.copy_(moved(x, rows)) if len(rows) == len(x) else moved(x, rows)
