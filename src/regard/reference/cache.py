"""The key/value cache of one attention layer in NumPy, so that each token of a text is read once.

Independent of masks and positions: a window is part of the mask.
"""

from dataclasses import dataclass

import numpy as np

KeysAndValues = tuple[np.ndarray, np.ndarray]
"""k and v, each B G S E."""


@dataclass(slots=True)
class Cache:
    """All keys and values so far. The capacity doubles when it is full, so that copies are rare.

    >>> cache, column = Cache(), np.zeros((1, 1, 1, 4))
    >>> [cache.update(column, column)[0].shape[2] for _ in range(3)]
    [1, 2, 3]
    """

    length: int = 0
    _buffers: KeysAndValues | None = None

    def update(self, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        """Append the columns k, v; return all keys and values, as views."""
        stop = self.length + k.shape[2]
        buffers = self._with_capacity(stop, k, v)
        for buffer, newest in zip(buffers, (k, v), strict=True):
            buffer[:, :, self.length : stop] = newest
        self.length = stop
        return buffers[0][:, :, :stop], buffers[1][:, :, :stop]

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        self.length = length
        if length == 0:
            self._buffers = None  # the next input may have another number of samples

    def select(self, rows: list[int]) -> None:
        """Keep these samples in this order; rows may repeat."""
        if self._buffers is not None:
            self._buffers = (self._buffers[0][rows], self._buffers[1][rows])

    def _with_capacity(self, length: int, k: np.ndarray, v: np.ndarray) -> KeysAndValues:
        if self._buffers is None or length > self._buffers[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = tuple(np.empty((*x.shape[:2], size, x.shape[3]), x.dtype) for x in (k, v))
            if self._buffers is not None:
                for new, old in zip(grown, self._buffers, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._buffers = (grown[0], grown[1])
        return self._buffers
