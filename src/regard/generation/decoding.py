"""The protocols between generation and a model: `Decoding`, a batch of texts with their caches, and the model itself.

How a model implements caches, layers and arrays is its own concern.
"""

from collections.abc import Callable
from typing import Protocol

from regard.arrays import Array


class Decoding(Protocol):
    """A batch of texts that a model is decoding. The first `step` sets the number of samples, B."""

    @property
    def vocab_size(self) -> int:
        """The number of ids, W."""

    @property
    def max_len(self) -> int | None:
        """The largest number of columns; None for no limit."""

    @property
    def length(self) -> int:
        """The number of columns read so far."""

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (B, T), a NumPy array or of the model's array type, and return the logits (B, W) after them.

        keep (B, T) is False for padding on the left of a shorter text; None means no padding.
        """

    def select(self, rows: list[int]) -> None:
        """Continue with these samples in this order; samples may be reordered, repeated or dropped."""

    def crop(self, length: int) -> None:
        """Remove everything after the first `length` columns from the cache."""


class GenerationModel(Protocol):
    """A model: `begin(source=None, *, source_mask=None, …)` returns an empty Decoding."""

    @property
    def begin(self) -> Callable[..., Decoding]:
        """Begin a batch; a source is encoded once, here."""
