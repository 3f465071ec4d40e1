"""A text that grows call by call in a model with a cache: which call continues which, and the parent of each sample.

Found by comparing keys. A cache that was continued contains the keys of the previous call, sample by sample; a beam
search that reordered its samples reordered their keys too. Values serve as well: a cache treats them like keys, and
they are all that is visible of a model that computes its own softmax.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.capture.token_labels import TokenSpeller
from regard.records import DecodeStep

TokenRows = tuple[tuple[str, ...], ...]


class Text:
    """What one side of a model has read so far: `total` tokens. `T`, `step` and `ids` belong to the last call."""

    def __init__(self, leader: str, speller: TokenSpeller) -> None:
        self.leader = leader
        """The module whose calls are counted: the first that was seen."""
        self.B = self.T = self.total = 0
        self.step: DecodeStep | None = None
        self.ids: np.ndarray | None = None
        self.is_text: np.ndarray | None = None
        """Which of the ids are not padding, B T; None for all."""
        self.ended = np.zeros(0, bool)
        """Which samples had ended after the last call, B."""
        self._speller = speller
        self._fingerprints: Tensor | None = None
        self._rows: list[list[str]] | None = None
        self._windows: dict[tuple[int, int], TokenRows] = {}

    def advance(
        self,
        keys: Tensor | None,
        B: int,
        T: int,
        S: int,
        ids: np.ndarray | None,
        reordered: tuple[int, ...] | None = None,
    ) -> None:
        """Add a call of the leader with T new tokens, which continue the text or start a new one. keys B G S E.

        `reordered` is the order in which samples of some cache were just selected: used if the keys agree with it.
        """
        fingerprints = None if keys is None else _fingerprints(keys)
        if ids is None and (self.B, self.T, self.total) == (B, T, S) and self.step is None:
            ids = self.ids  # several layers share one module: they read the same
        self.step = (
            None
            if self.total == 0 or T >= S
            else self._continuation(fingerprints, B, T, S, reordered or tuple(range(B)))
        )
        start = 0 if self.step is None else self.step.start
        self.B, self.T, self.total, self._fingerprints = B, T, start + T, fingerprints
        self._read(ids, start)

    def continues_after(self, unobserved: int) -> None:
        """Mark the text that just started as continued: `unobserved` tokens were read before the watch."""
        self.step, self.total = DecodeStep(unobserved, ()), unobserved + self.T
        if self._rows is not None:
            self._rows = [[""] * unobserved + row for row in self._rows]

    def tokens(self, count: int, start: int | None = None) -> TokenRows | None:
        """`count` tokens: the last ones, or those from `start` on; unused cache positions are ""."""
        if self._rows is None:
            return None
        first = max(0, self.total - count) if start is None else start
        found = self._windows.get((first, count))
        if found is None:
            cut = [row[first : first + count] for row in self._rows]
            found = tuple((*row, *[""] * (count - len(row))) for row in cut)
            self._windows[first, count] = found
        return found

    def _continuation(
        self, fingerprints: Tensor | None, B: int, T: int, S: int, reordered: tuple[int, ...]
    ) -> DecodeStep | None:
        """The position of this call's tokens and the parent of each sample; None if a new text starts."""
        if fingerprints is None or self._fingerprints is None:  # only sizes are known
            return DecodeStep(self.total, reordered) if (self.B, self.total + T) == (B, S) else None
        old = self._fingerprints[:, : self.total]  # without the unused positions of a cache
        length = old.shape[1]
        now = fingerprints[:, : min(S - T, length)]
        for end in _ends(old, now):
            parents = _parents(old[:, end - now.shape[1] : end], now, reordered)
            if parents is not None:
                return DecodeStep(self.total - length + end, parents)
        return None

    def _read(self, ids: np.ndarray | None, start: int) -> None:
        self.ids, self._windows = ids, {}
        old, step = self._rows, self.step
        new = None
        if ids is not None and (step is None or old is not None):
            new = self._speller.tokens_of_rows(ids.tolist())
        if new is not None and step is not None and old is not None:
            new = [old[parent][:start] + row for parent, row in zip(step.parents, new, strict=True)]
        self._rows = new


def _ends(old: Tensor, now: Tensor) -> Iterator[int]:
    """The possible ends of the n current fingerprints within the old ones, B L 2, latest first.

    The end of the old ones if the text only grew, even if the cache dropped the oldest. An earlier end if the text was
    cut back.
    """
    length, n = old.shape[1], now.shape[1]
    yield length
    if n < length:
        like_the_last = (old[:, n - 1 : -1] == now[:1, -1:]).all(-1).any(0)
        yield from (like_the_last.nonzero().flatten().flip(0) + n).tolist()


def _fingerprints(keys: Tensor) -> Tensor:
    """Two numbers of each key, B S 2: enough to distinguish the keys of two texts."""
    return keys[:, 0, :, :: max(1, keys.shape[-1] - 1)].detach().clone()


def _parents(before: Tensor, now: Tensor, reordered: tuple[int, ...]) -> tuple[int, ...] | None:
    """The parent of each sample, by its keys; `reordered` if that fits. None if a sample has no parent.

    Keys may fit several parents, because those that a cache dropped are unknown.
    """
    if max(reordered) < len(before) and torch.equal(before[list(reordered)], now):
        return reordered
    found = []
    for sample, likely in zip(now, reordered, strict=True):
        same = (before == sample).flatten(1).all(1).tolist()
        if True not in same:
            return None
        found.append(likely if likely < len(same) and same[likely] else same.index(True))
    return tuple(found)


class KeyHistory:
    """The keys of one module over the calls of one text. Each call adds only its own, so memory is linear."""

    def __init__(self) -> None:
        self._pieces: list[tuple[DecodeStep, Tensor]] = []
        self._whole: Tensor | None = None
        self.only_appended = True
        """Whether no token was removed, and each sample continued its own text."""

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def total(self) -> int:
        return self._pieces[-1][0].start + self._pieces[-1][1].shape[2] if self._pieces else 0

    def add(self, step: DecodeStep, keys: Tensor) -> None:
        """Add the new keys of a call, B G n E, and their step."""
        self.only_appended &= keeps_order(step.parents) and (not self._pieces or step.start == self.total)
        self._pieces.append((step, keys))
        self._whole = None

    def until(self, count: int) -> Tensor:
        """All keys of the text as they were after `count` calls, B G total E."""
        last_step, last = self._pieces[count - 1]
        end = last_step.start + last.shape[2]
        if self.only_appended:
            if self._whole is None:
                self._whole = _concatenated([keys for _, keys in self._pieces])
            return self._whole[:, :, :end]
        parts: list[Tensor] = []
        rows: Sequence[int] = range(last.shape[0])
        for step, keys in reversed(self._pieces[:count]):
            if step.start < end:
                parts.append(keys[list(rows), :, : end - step.start])
                end = step.start
            rows = [step.parents[row] for row in rows]
        return _concatenated(parts[::-1])

    def parts(self, count: int) -> list[Tensor]:
        """The same as two parts, if keys were only appended: the first call's keys, uncopied, and all others."""
        first, *others = [keys for _, keys in self._pieces[:count]]
        return [first, _concatenated(others)] if others else [first]


def keeps_order(parents: Sequence[int]) -> bool:
    """Whether each sample continues its own text."""
    return all(place == parent for place, parent in enumerate(parents))


def _concatenated(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate keys. Keys that heads share may be repeated in one call and not in another."""
    G = max(keys.shape[1] for keys in parts)
    return torch.cat([k if k.shape[1] == G else k.repeat_interleave(G // k.shape[1], 1) for k in parts], 2)
