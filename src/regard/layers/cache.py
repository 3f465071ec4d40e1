"""What one attention remembers of its keys and values, so that a text is read once and not once a token.

Uncached remembers nothing; Growing whatever it is given; Static a fixed number of columns, in memory that never
moves, as graphs on a GPU want it; Kept what it was given first, for cross-attention. None of them knows about masks.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

KeysAndValues = tuple[Tensor, Tensor]
"""B G S E twice."""


class LayerCache(Protocol):
    """Asked for all keys and values, given a function that makes those of the newest tokens."""

    def extended(self, newest: Callable[[], KeysAndValues]) -> KeysAndValues: ...


class Uncached:
    """The newest are all there are."""

    def extended(self, newest: Callable[[], KeysAndValues]) -> KeysAndValues:
        return newest()


UNCACHED = Uncached()


class Kept:
    """What was made first is kept: the encoder's output does not change while the decoder writes."""

    def __init__(self) -> None:
        self.kept: KeysAndValues | None = None

    def extended(self, newest: Callable[[], KeysAndValues]) -> KeysAndValues:
        if self.kept is None:
            self.kept = newest()
        return self.kept

    def select(self, rows: Tensor) -> None:
        """The samples in this order, repeated or dropped."""
        if self.kept is not None:
            self.kept = (self.kept[0][rows], self.kept[1][rows])


class Growing:
    """All keys and values so far. Room for twice as many is made when it runs out, so that a step copies one column."""

    def __init__(self) -> None:
        self.length = 0
        self._room: KeysAndValues | None = None

    def extended(self, newest: Callable[[], KeysAndValues]) -> KeysAndValues:
        k, v = newest()
        start, stop = self.length, self.length + k.shape[2]
        k_room, v_room = self._with_room_for(stop, k, v)
        k_room[:, :, start:stop] = k
        v_room[:, :, start:stop] = v
        self.length = stop
        return k_room[:, :, :stop], v_room[:, :, :stop]

    def _with_room_for(self, length: int, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._room is None or length > self._room[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = tuple(x.new_empty(*x.shape[:2], size, x.shape[3]) for x in (k, v))
            if self._room is not None:
                for new, old in zip(grown, self._room, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._room = (grown[0], grown[1])
        return self._room

    def select(self, rows: Tensor) -> None:
        """The samples in this order, repeated or dropped."""
        if self._room is not None:
            self._room = (self._room[0][rows], self._room[1][rows])

    def crop(self, length: int) -> None:
        """Forget what came after the first `length` columns."""
        self.length = length


class Static:
    """`max_len` columns from the start. The newest go where `columns`, which someone else sets, says."""

    def __init__(self, columns: Callable[[], Tensor], max_len: int) -> None:
        self._columns, self._max_len = columns, max_len
        self._room: KeysAndValues | None = None

    def extended(self, newest: Callable[[], KeysAndValues]) -> KeysAndValues:
        k, v = newest()
        if self._room is None:
            # Zeros: a column not yet written is hidden, but a kernel may multiply it with a weight of 0.
            k_room, v_room = (x.new_zeros(*x.shape[:2], self._max_len, x.shape[3]) for x in (k, v))
            self._room = (k_room, v_room)
        for whole, new in zip(self._room, (k, v), strict=True):
            whole.index_copy_(2, self._columns(), new)
        return self._room

    def select(self, rows: Tensor) -> None:
        """The samples in this order; where there are as many as before, in the same memory."""
        if self._room is not None:
            same = len(rows) == self._room[0].shape[0]
            k, v = (x.copy_(x[rows]) if same else x[rows] for x in self._room)
            self._room = (k, v)
