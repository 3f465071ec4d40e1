"""Decoding: what a model remembers of a text while it goes on with it, as generation sees it.

A protocol and nothing more: caches, layers and arrays are the model's own affair.
"""

from collections.abc import Callable
from typing import Protocol

from regard.arrays import Array


class Decoding(Protocol):
    """A batch of texts that a model has begun to read. The first `step` sets the number of samples, B."""

    @property
    def vocab_size(self) -> int:
        """How many ids there are, W."""

    @property
    def max_len(self) -> int | None:
        """How many columns it can hold; None for no limit."""

    @property
    def length(self) -> int:
        """How many columns it has read."""

    def step(self, ids: Array, keep: Array | None = None) -> Array:
        """Read ids (B, T), NumPy's or the model's own kind, and give the logits (B, W) after the last column.

        keep (B, T) is False where a shorter text was filled up on its left; None means that all ids count.
        """

    def select(self, rows: list[int]) -> None:
        """Go on with these samples in this order: reordered, repeated or dropped."""

    def crop(self, length: int) -> None:
        """Forget what was read after the first `length` columns."""


class Begins(Protocol):
    """A model: `begin(source=None, *, source_mask=None, …)` gives a Decoding that has read nothing yet."""

    @property
    def begin(self) -> Callable[..., Decoding]:
        """Begin a batch; the source, where there is one, is encoded once, here."""
