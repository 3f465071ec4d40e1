"""What one attention remembers of its keys and values, so that a text is read once and not once a token.

It knows nothing of masks, positions or samples' texts; a window is the mask's business.
"""

from dataclasses import dataclass

import numpy as np

KeysAndValues = tuple[np.ndarray, np.ndarray]
"""B G S E twice."""


@dataclass(slots=True)
class Cache:
    """All keys and values so far. Room for twice as many is made when it runs out, so that copies stay rare.

    >>> cache, column = Cache(), np.zeros((1, 1, 1, 4))
    >>> [cache.extended(column, column)[0].shape[2] for _ in range(3)]
    [1, 2, 3]
    """

    length: int = 0
    _room: KeysAndValues | None = None

    def extended(self, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        """What there is with the newest columns k, v; views, not copies."""
        stop = self.length + k.shape[2]
        room = self._with_room_for(stop, k, v)
        for whole, newest in zip(room, (k, v), strict=True):
            whole[:, :, self.length : stop] = newest
        self.length = stop
        return room[0][:, :, :stop], room[1][:, :, :stop]

    def crop(self, length: int) -> None:
        """Forget the columns from `length` on."""
        self.length = length
        if length == 0:
            self._room = None  # what is read next may have other samples

    def select(self, rows: list[int]) -> None:
        """The samples in this order, repeated or dropped."""
        if self._room is not None:
            self._room = (self._room[0][rows], self._room[1][rows])

    def _with_room_for(self, length: int, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        if self._room is None or length > self._room[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = tuple(np.empty((*x.shape[:2], size, x.shape[3]), x.dtype) for x in (k, v))
            if self._room is not None:
                for new, old in zip(grown, self._room, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._room = (grown[0], grown[1])
        return self._room
