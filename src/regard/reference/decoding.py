"""Decoding: a text written token by token; what was read is remembered and never read again.

It follows the protocol of `generation`, which chooses the tokens; here are only ids, caches and logits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.config.inputs import check_crop, check_room, check_rows, check_samples
from regard.masks import Mask
from regard.reference.blocks import Run, Span, stack
from regard.reference.cache import Cache, KeysAndValues
from regard.reference.ends import embed, logits_of
from regard.reference.given import given_ids, given_keep


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
        self._samples = next((len(k) for k, _ in self._memory.values()), None)
        self._keep: np.ndarray | None = None
        """Which columns so far are no padding, (B, length); None while all are."""
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

        keep (B, T) is False for padding: nobody looks there, and positions do not count it.
        """
        ids = given_ids("ids", ids, self._run.config)
        check_room(self.length + ids.shape[1], self.max_len)
        if self._samples is not None:
            check_samples("ids", len(ids), self._samples)
        kept = self._kept_after(ids, given_keep(keep, ids))
        for cache in self._caches.values():
            cache.crop(self.length)  # a step that was interrupted may have left columns behind
        keys = np.arange(self.length + ids.shape[1]) if kept is None else np.maximum(kept.cumsum(1) - 1, 0)
        span = Span(
            side="decoder",
            positions=keys[..., self.length :],
            keys=keys,
            keep=kept,
            caches=self._caches,
            memory=self._memory,
            memory_mask=None if self._memory_keep is None else Mask.from_keep(self._memory_keep),
        )
        x = stack(self._run, span, embed(self._run, ids))
        self.length, self._samples, self._keep = keys.shape[-1], len(ids), kept
        return logits_of(self._run, x[:, -1])

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these samples in this order: some repeated, some dropped."""
        rows = [int(row) for row in rows]
        check_rows(rows, self._samples or 0)
        for cache in self._caches.values():
            cache.select(rows)
        self._memory = {name: (k[rows], v[rows]) for name, (k, v) in self._memory.items()}
        self._memory_keep = None if self._memory_keep is None else self._memory_keep[rows]
        self._keep = None if self._keep is None else self._keep[rows]
        self._samples = len(rows)

    def crop(self, length: int) -> None:
        """Forget what was read after `length` columns."""
        check_crop(length, self.length)
        for cache in self._caches.values():
            cache.crop(length)
        self.length, self._keep = length, None if self._keep is None else self._keep[:, :length]

    def _kept_after(self, ids: np.ndarray, keep: np.ndarray | None) -> np.ndarray | None:
        """Which columns are no padding once ids are read, (B, length + T)."""
        if keep is None and self._keep is None:
            return None
        before = np.ones((len(ids), self.length), bool) if self._keep is None else self._keep
        return np.concatenate((before, np.ones(ids.shape, bool) if keep is None else keep), axis=1)
