"""A text as it grows under a model that remembers: which call goes on from which, and whose text each sample has.

Told by the keys themselves. A cache that was carried on shows the keys of the call before, sample by sample, wherever
it put them; a beam search that moved its samples about has moved their keys with them. Values do as well: a cache
treats them as it does keys, and of a model that makes its own softmax they are all that is seen.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.capture.token_labels import Spelling
from regard.records import Step

Rows = tuple[tuple[str, ...], ...]


class Text:
    """What one side of a model has read so far. `total` tokens; `T`, `step` and `ids` are those of the last call."""

    def __init__(self, leader: str, spelling: Spelling) -> None:
        self.leader = leader
        """The module whose calls are counted: the first that was seen."""
        self.B = self.T = self.total = 0
        self.step: Step | None = None
        self.ids: np.ndarray | None = None
        self.text: np.ndarray | None = None
        """Which of the ids are text and not padding, B T; None for all."""
        self.ended = np.zeros(0, bool)
        """Which samples had ended after the last call, B."""
        self._spelling = spelling
        self._marks: Tensor | None = None
        self._rows: list[list[str]] | None = None
        self._windows: dict[tuple[int, int], Rows] = {}

    def advance(
        self,
        keys: Tensor | None,
        B: int,
        T: int,
        S: int,
        ids: np.ndarray | None,
        moved: tuple[int, ...] | None = None,
    ) -> None:
        """The leader was called: with T new tokens, after others or anew. keys or values B G S E, where known.

        `moved` is an order that samples of some cache were put in before: believed where keys do not speak against it.
        """
        marks = None if keys is None else _marks(keys)
        if ids is None and (self.B, self.T, self.total) == (B, T, S) and self.step is None:
            ids = self.ids  # layers that are one module: they have read the same
        self.step = None if self.total == 0 or T >= S else self._goes_on(marks, B, T, S, moved or tuple(range(B)))
        start = 0 if self.step is None else self.step.start
        self.B, self.T, self.total, self._marks = B, T, start + T, marks
        self._read(ids, start)

    def goes_on_after(self, unseen: int) -> None:
        """The text that has just begun is the rest of one, of which so many tokens were read before anybody watched."""
        self.step, self.total = Step(unseen, ()), unseen + self.T
        if self._rows is not None:
            self._rows = [[""] * unseen + row for row in self._rows]

    def tokens(self, count: int, start: int | None = None) -> Rows | None:
        """`count` tokens: the last ones, or those from `start` on; places that nobody wrote to have none."""
        if self._rows is None:
            return None
        first = max(0, self.total - count) if start is None else start
        found = self._windows.get((first, count))
        if found is None:
            cut = [row[first : first + count] for row in self._rows]
            found = tuple((*row, *[""] * (count - len(row))) for row in cut)
            self._windows[first, count] = found
        return found

    def _goes_on(self, marks: Tensor | None, B: int, T: int, S: int, moved: tuple[int, ...]) -> Step | None:
        """Where this call's tokens stand and whose text each sample continues; None where it begins anew."""
        if marks is None or self._marks is None:  # only sizes to go by
            return Step(self.total, moved) if (self.B, self.total + T) == (B, S) else None
        old = self._marks[:, : self.total]  # not the room that a cache may have to spare
        length = old.shape[1]
        now = marks[:, : min(S - T, length)]
        for end in _ends(old, now):
            parents = _parents(old[:, end - now.shape[1] : end], now, moved)
            if parents is not None:
                return Step(self.total - length + end, parents)
        return None

    def _read(self, ids: np.ndarray | None, start: int) -> None:
        self.ids, self._windows = ids, {}
        old, step = self._rows, self.step
        new = None
        if ids is not None and (step is None or old is not None):
            new = self._spelling.words(ids.tolist())
        if new is not None and step is not None and old is not None:
            new = [old[parent][:start] + row for parent, row in zip(step.parents, new, strict=True)]
        self._rows = new


def _ends(old: Tensor, now: Tensor) -> Iterator[int]:
    """Up to where the old marks, B L 2, may be there still, as the n marks now: the latest first.

    To their end, where a text only grows; the oldest may have been forgotten. Or it was cut back, to a beginning or to
    what a window shows of one.
    """
    length, n = old.shape[1], now.shape[1]
    yield length
    if n < length:
        like_the_last = (old[:, n - 1 : -1] == now[:1, -1:]).all(-1).any(0)
        yield from (like_the_last.nonzero().flatten().flip(0) + n).tolist()


def _marks(keys: Tensor) -> Tensor:
    """Two numbers of each key, B S 2: enough to tell one text's keys from another's."""
    return keys[:, 0, :, :: max(1, keys.shape[-1] - 1)].detach().clone()


def _parents(before: Tensor, now: Tensor, moved: tuple[int, ...]) -> tuple[int, ...] | None:
    """For each sample now, the sample before whose keys it has, `moved` where that fits. None if one has none.

    Keys may fit several: of those that a cache has forgotten, nothing is known any more.
    """
    if max(moved) < len(before) and torch.equal(before[list(moved)], now):
        return moved
    found = []
    for sample, likely in zip(now, moved, strict=True):
        same = (before == sample).flatten(1).all(1).tolist()
        if True not in same:
            return None
        found.append(likely if likely < len(same) and same[likely] else same.index(True))
    return tuple(found)


class Keys:
    """The keys of one module over the calls of one text, each call's own only: linear, where whole caches are not."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Step, Tensor]] = []
        self._whole: Tensor | None = None
        self.only_grew = True
        """Nothing was taken back, and each sample continued its own text."""

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def total(self) -> int:
        return self._pieces[-1][0].start + self._pieces[-1][1].shape[2] if self._pieces else 0

    def add(self, step: Step, keys: Tensor) -> None:
        """The keys that a call brought, B G n E, and where they stand."""
        self.only_grew &= stayed(step.parents) and (not self._pieces or step.start == self.total)
        self._pieces.append((step, keys))
        self._whole = None

    def until(self, count: int) -> Tensor:
        """All keys of the text as it was after `count` calls, B G total E."""
        last_step, last = self._pieces[count - 1]
        end = last_step.start + last.shape[2]
        if self.only_grew:
            if self._whole is None:
                self._whole = _in_a_row([keys for _, keys in self._pieces])
            return self._whole[:, :, :end]
        parts: list[Tensor] = []
        rows: Sequence[int] = range(last.shape[0])
        for step, keys in reversed(self._pieces[:count]):
            if step.start < end:
                parts.append(keys[list(rows), :, : end - step.start])
                end = step.start
            rows = [step.parents[row] for row in rows]
        return _in_a_row(parts[::-1])

    def halves(self, count: int) -> list[Tensor]:
        """The same of a text that only grew, uncopied: the first call's keys, which are most, and all others'."""
        first, *others = [keys for _, keys in self._pieces[:count]]
        return [first, _in_a_row(others)] if others else [first]


def stayed(parents: Sequence[int]) -> bool:
    """Whether each sample continues its own text."""
    return all(place == parent for place, parent in enumerate(parents))


def _in_a_row(parts: Sequence[Tensor]) -> Tensor:
    """Keys one after the other. Keys that heads share may have been repeated in one call and not in another."""
    G = max(keys.shape[1] for keys in parts)
    return torch.cat([k if k.shape[1] == G else k.repeat_interleave(G // k.shape[1], 1) for k in parts], 2)
