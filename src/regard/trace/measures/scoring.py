"""Sums over blocks of rows, from which the scores of heads are made. What the scores mean stands in `heads`."""

from typing import NamedTuple

import numpy as np

from regard.patterns import ALIGNMENT, View, chosen, is_separator, is_word, numbered
from regard.records import Record
from regard.trace.measures.blocks import Block, is_across, places
from regard.trace.measures.sight import Sight

FEWEST = 3
"""Queries from which on a score says something about a head, and not about two tokens."""
FEWEST_OF_FAMILY = 6
"""The same for patterns of which the best of many is taken: among many, a few queries fit one by chance."""


class Score(NamedTuple):
    """How far a head does one thing."""

    pattern: str
    value: float
    """0 to 1."""
    queries: int
    """How many queries it rests on, of all samples together."""
    even: float
    """The share that looking evenly would have given."""

    @property
    def room(self) -> float:
        """Σ (1 − even) over its queries."""
        return self.queries * (1 - self.even)


class Views:
    """What the patterns are told, block by block."""

    def __init__(self, record: Record, sight: Sight) -> None:
        B, _, _, S = record.shape
        self.record, self.first = record, sight.first
        self.tokens = self.separators = None
        if record.keys is not None:
            self.tokens = numbered(record.keys, B)
            flags = np.array([[is_separator(token) for token in row] for row in record.keys], bool)
            self.separators = np.broadcast_to(flags, (B, S))

    def of(self, rows: slice, seen: np.ndarray) -> View:
        """The view of some rows; `seen` is B h r S."""
        at = np.zeros(rows.stop - rows.start, int) if is_across(self.record) else places(self.record, rows)
        return View(at, np.any(seen, axis=1), self.first, self.tokens, self.separators, self.record.keys)


class PatternSums:
    """Mass and room of every pattern and head, so far."""

    def __init__(self, record: Record) -> None:
        self.patterns = chosen(is_across(record), named=record.keys is not None)
        self.above, self.room, self.queries = np.zeros((3, record.shape[1], len(self.patterns)))  # each H P

    def add(self, block: Block, seen: np.ndarray, view: View) -> None:
        """The rows of one block; `seen` is B h r S."""
        shape = (*view.seen.shape, len(self.patterns))
        counts = np.zeros(shape, block.weights.dtype)  # B r S P
        for number, pattern in enumerate(self.patterns.values()):
            counts[..., number] = pattern(view)
        mass = np.minimum(1, block.weights.swapaxes(1, 2) @ counts)  # B r H P
        lookable = seen.swapaxes(1, 2).astype(counts.dtype)  # B r h S
        number_seen = np.maximum(lookable.sum(-1, keepdims=True), 1)
        even = np.minimum(1, lookable @ counts / number_seen)  # B r h P
        # Who sees no such key, or no other, shows nothing.
        telling = (even > 0) & (even < 1) & block.looking.swapaxes(1, 2)[..., None]  # B r H P
        self.above += np.where(telling, mass - even, 0).sum((0, 1), dtype=np.float64)
        self.room += np.where(telling, 1 - even, 0).sum((0, 1), dtype=np.float64)
        self.queries += telling.sum((0, 1))

    def scores(self) -> list[dict[str, Score]]:
        """For each head, the patterns that any query told about."""
        return [
            {
                name: Score(name, float(np.clip(above / room, 0, 1)), int(queries), float(1 - room / queries))
                for name, above, room, queries in zip(self.patterns, *sums, strict=True)
                if queries
            }
            for sums in zip(self.above, self.room, self.queries, strict=True)
        ]


class Offsets:
    """The same for every distance of query and key at once, in self-attention: sums along the diagonals.

    Where each head sees the same keys, `even` is one number for all of them.
    """

    def __init__(self, record: Record) -> None:
        self.S = record.shape[-1]
        width = max(2 * self.S - 1, 0)  # key − query from −(S − 1) to S − 1
        self.mass, self.even, self.room, self.queries = np.zeros((4, record.shape[1], width))

    def add(self, block: Block, seen: np.ndarray, at: np.ndarray) -> None:
        """The rows of one block; `seen` is B h r S, `at` where its queries stand."""
        looking = block.looking  # B H r
        if looking.shape[1] and bool((looking == looking[:, :1]).all()):
            looking = looking[:, : seen.shape[1]]
        visible = seen & looking[..., None]  # B h r S, or B H r S
        share = visible / np.maximum(seen.sum(-1, keepdims=True), 1)
        telling = visible & (share < 1)
        first = self.S - 1 - int(at[0])
        self.mass += _diagonals(np.where(telling, block.weights, 0), first, self.S)
        self.even += _diagonals(np.where(telling, share, 0), first, self.S)
        self.room += _diagonals(np.where(telling, 1 - share, 0), first, self.S)
        self.queries += _diagonals(telling, first, self.S)

    def of(self, head: int, back: int) -> Score | None:
        """The score of one head for the key so many places back; None where no query has one."""
        at = self.S - 1 - back
        if not 0 <= at < self.mass.shape[1] or not self.queries[head, at]:
            return None
        room, queries = self.room[head, at], int(self.queries[head, at])
        value = float(np.clip((self.mass[head, at] - self.even[head, at]) / room, 0, 1))
        name = f"back-{back}" if back > 0 else f"ahead-{-back}"
        return Score(name, value, queries, float(1 - room / queries))

    def best(self, head: int) -> Score | None:
        """The best of all distances but 0 and 1 back, which have names of their own.

        A third of the queries must have such a key: a distance that a few of them have fits by chance.
        """
        if not self.S:
            return None
        queries = self.queries[head].copy()
        fewest = max(FEWEST_OF_FAMILY, queries.max(initial=0) / 3)
        queries[[self.S - 1, max(self.S - 2, 0)]] = 0
        above = np.where(queries >= fewest, self.mass[head] - self.even[head], 0)
        value = np.where(queries >= fewest, above / np.maximum(self.room[head], 1e-9), -1)
        at = int(value.argmax())
        return self.of(head, self.S - 1 - at) if value[at] > 0 else None


def _diagonals(values: np.ndarray, first: int, S: int) -> np.ndarray:
    """h (2 S − 1): sums of B h r S along its diagonals, where row 0 begins at place `first` of them.

    Row i is laid i places further to the left, so that diagonals become columns.
    """
    rows = values.sum(0, dtype=np.float64)  # h r S
    h, r, _ = rows.shape
    laid = np.zeros((h, r, S + r - 1))
    high, row, column = laid.strides
    skewed = np.lib.stride_tricks.as_strided(laid[:, :, r - 1 :], (h, r, S), (high, row - column, column))
    skewed[:] = rows
    sums = np.zeros((h, 2 * S - 1))
    start = first - (r - 1)
    sums[:, start : start + S + r - 1] = laid.sum(1)
    return sums


class Coverage:
    """The most that each key received from any one query of cross-attention, so far: B H S.

    Where it is known what the queries write, only those count that write a word, and only keys that are words: a head
    may well look from the token just read, so that its last key is left to the query that writes the end.
    """

    def __init__(self, record: Record) -> None:
        B, H, T, S = record.shape
        self.most = np.zeros((B, H, S))
        self.seen = np.zeros((B, S), bool)
        self.queries = np.zeros((B, H), int)
        self.given = np.zeros((B, H))
        """What the queries gave to such keys, all together."""
        self.rows, self.keys = np.ones((B, T), bool), np.ones((B, S), bool)
        if record.written is not None and any(map(any, record.written)):
            self.rows[:] = [[is_word(token) for token in row] for row in record.written]
            if record.keys is not None:
                self.keys[:] = [[is_word(token) for token in row] for row in record.keys]

    def add(self, block: Block, seen: np.ndarray) -> None:
        """The rows of one block; `seen` is B h r S."""
        rows = self.rows[:, None, block.rows]  # B 1 r
        weights = block.weights * (rows[..., None] & self.keys[:, None, None])
        np.maximum(self.most, weights.max(-2), out=self.most)
        self.seen |= seen.any((1, 2)) & self.keys
        self.queries += (block.looking & rows).sum(-1)
        self.given += weights.sum((-1, -2), dtype=np.float64)

    def scores(self) -> list[Score | None]:
        """For each head, the mean of all samples; None where none has enough queries and keys."""
        pairs = np.minimum(self.queries, self.seen.sum(-1)[:, None])  # B H: so many could have a key of their own
        share = np.minimum(1, self.given / np.maximum(self.queries, 1))  # B H: of their weight, what words received
        values = np.clip((self.most.sum(-1) - 1) / np.maximum(pairs - 1, 1), 0, 1) * share**2
        found: list[Score | None] = []
        for head in range(pairs.shape[1]):
            enough = pairs[:, head] >= FEWEST
            queries = int(self.queries[enough, head].sum())
            value = float(values[enough, head].mean()) if queries else 0.0
            found.append(Score(ALIGNMENT, value, queries, 0.0) if queries else None)
        return found
