"""Decoding: a text written token by token; what was read is remembered and never read again.

It follows the protocol of `generation`, which chooses the tokens; here are only ids, caches and logits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.config.inputs import check_crop, check_room, check_samples, checked_rows
from regard.masks import Mask
from regard.reference.blocks import Run, Span, stack
from regard.reference.cache import Cache, KeysAndValues
from regard.reference.ends import embed, logits_of
from regard.reference.inputs import given_ids, padding_after


class Decoding:
    """B texts at once, each as far as it was read. `Transformer.begin` makes one.

    memory        the encoder's keys and values for each cross-attention, by its name
    memory_keep   which of these are no padding, (B, S)
    """

    def __init__(
        self, run: Run, memory: dict[str, KeysAndValues] | None = None, memory_keep: np.ndarray | None = None
    ) -> None:
        self._run = run
        self._memory, self._memory_keep = memory or {}, memory_keep
        self._beginning = self._memory, memory_keep
        self._samples = self._samples_at_first = next((len(k) for k, _ in self._memory.values()), None)
        self._origins = np.arange(self._samples or 0)
        """Which source each sample reads, (B,)."""
        self._padding: np.ndarray | None = None
        """How many columns before each text are padding, (B,); None while there is none."""
        layers = range(run.config.n_decoder_layers or 0)
        self._caches = {f"decoder.layers.{i}.self_attention": Cache() for i in layers}
        self.length = 0
        """How many columns were read."""

    @property
    def vocab_size(self) -> int:
        """W, how many tokens there are to choose from."""
        assert self._run.config.vocab_size is not None  # `begin` sees to it
        return self._run.config.vocab_size

    @property
    def max_len(self) -> int | None:
        """How many columns can be read; None for no end."""
        return self._run.config.max_len

    @np.errstate(over="ignore", invalid="ignore")
    def step(self, ids: Any, keep: Any = None) -> np.ndarray:
        """Read ids (B, T) and give the logits after the last of them, (B, W).

        keep (B, T) is False for padding, which stands before a text: nobody looks there, and positions do not count it.
        """
        ids = given_ids("ids", ids, self._run.config)
        check_room(self.length + ids.shape[1], self.max_len)
        if self._samples is not None:
            check_samples("ids", len(ids), self._samples)
        padding = self._padding
        if keep is not None:
            padding = padding_after(keep, ids.shape, self.length, padding)
        for cache in self._caches.values():
            cache.crop(self.length)  # a step that was interrupted may have left columns behind
        columns = np.arange(self.length + ids.shape[1])
        keys = columns if padding is None else np.maximum(columns - padding[:, None], 0)  # padding gets 0, unseen
        span = Span(
            side="decoder",
            positions=keys[..., self.length :],
            keys=keys,
            keep=None if padding is None else columns >= padding[:, None],
            caches=self._caches,
            memory=self._memory,
            memory_mask=None if self._memory_keep is None else Mask.from_keep(self._memory_keep),
        )
        x = stack(self._run, span, embed(self._run, ids))
        if self.length == 0:
            self._samples_at_first = len(ids)
        self.length, self._samples, self._padding = len(columns), len(ids), padding
        return logits_of(self._run, x[:, -1])

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these samples in this order: some repeated, some dropped."""
        rows = checked_rows(rows, self._samples)
        for cache in self._caches.values():
            cache.select(rows)
        if self._memory and (origins := self._origins[rows]).tolist() != self._origins.tolist():
            # Beams of one source that change places look at the same as before: nothing to copy.
            self._origins = origins
            self._memory = {name: (k[rows], v[rows]) for name, (k, v) in self._memory.items()}
            self._memory_keep = None if self._memory_keep is None else self._memory_keep[rows]
        self._padding = None if self._padding is None else self._padding[rows]
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Forget what was read after `length` columns; with all of it, what samples were selected."""
        check_crop(length, self.length)
        for cache in self._caches.values():
            cache.crop(length)
        self._padding = None if self._padding is None else np.minimum(self._padding, length)
        self.length = length
        if length == 0:
            self._restart()

    def _restart(self) -> None:
        """As many samples as there were at first, each with its own source."""
        self._memory, self._memory_keep = self._beginning
        self._origins = np.arange(self._samples_at_first or 0)
        if self._samples != self._samples_at_first:
            self._padding = None
            self._samples = self._samples_at_first if self._memory else None
