"""Sums over blocks of rows, from which the scores of heads are made. What the scores mean stands in `heads`."""

from typing import NamedTuple

import numpy as np

from regard.records import Record
from regard.trace.measures.blocks import Block, is_across, places
from regard.trace.measures.patterns import ACROSS, OF_TOKENS, WITHIN, Pattern, View, is_separator, numbered
from regard.trace.measures.sight import Sight

ALIGNMENT = "alignment"
FEWEST = 3
"""Queries from which on a score says something about a head, and not about two tokens."""


class Score(NamedTuple):
    """How far a head does one thing."""

    pattern: str
    value: float
    """0 to 1."""
    queries: int
    """How many queries it rests on, of all samples together."""
    even: float
    """The share that looking evenly would have given."""


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
        return View(at, np.any(seen, axis=1), self.first, self.tokens, self.separators)


class PatternSums:
    """Mass and room of every pattern and head, so far."""

    def __init__(self, record: Record) -> None:
        named, chosen = record.keys is not None, ACROSS if is_across(record) else WITHIN
        self.patterns: dict[str, Pattern] = {
            name: pattern for name, pattern in chosen.items() if named or name not in OF_TOKENS
        }
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


class Coverage:
    """The most that each key received from any one query of cross-attention, so far: B H S."""

    def __init__(self, record: Record) -> None:
        B, H, _, S = record.shape
        self.most = np.zeros((B, H, S))
        self.seen = np.zeros((B, S), bool)
        self.queries = np.zeros((B, H), int)

    def add(self, block: Block, seen: np.ndarray) -> None:
        """The rows of one block; `seen` is B h r S."""
        np.maximum(self.most, block.weights.max(-2), out=self.most)
        self.seen |= seen.any((1, 2))
        self.queries += block.looking.sum(-1)

    def scores(self) -> list[Score | None]:
        """For each head, the mean of all samples; None where none has enough queries and keys."""
        pairs = np.minimum(self.queries, self.seen.sum(-1)[:, None])  # B H: so many could have a key of their own
        values = np.clip((self.most.sum(-1) - 1) / np.maximum(pairs - 1, 1), 0, 1)
        found: list[Score | None] = []
        for head in range(pairs.shape[1]):
            enough = pairs[:, head] >= FEWEST
            queries = int(self.queries[enough, head].sum())
            value = float(values[enough, head].mean()) if queries else 0.0
            found.append(Score(ALIGNMENT, value, queries, 0.0) if queries else None)
        return found
