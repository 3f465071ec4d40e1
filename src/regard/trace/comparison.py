"""Two traces compared head by head, their tokens aligned: how far each head's attention differs, and where most.

`Trace.compare` makes a Comparison: of two texts, two models, or two checkpoints of one. Layers are paired in order, or
by name where one trace has more of them. Where q and k were not kept, the maps are compared, bin by bin. Compared are
tokens that both texts have, and those that replace each other ("love" and "hate" in "I love you" and "I hate you"); the
attention of a row to all other keys counts as one more key, so that rows still sum to 1.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError, TooLargeError
from regard.messages import Language
from regard.records import Record, tokens_of
from regard.trace.pooling import bin_size
from regard.trace.trace import Trace

MOST_WEIGHTS = 2**24
"""The most weights of one head that are compared: 4,096 × 4,096."""
Pair = tuple[int | None, int | None]
"""The positions of one token in both texts; None where a text does not have it."""


class Difference(NamedTuple):
    """How one head differs between two traces.

    distance        the Jensen–Shannon distance of its rows, from 0 (equal) to 1 (no key in common): the mean over the
                    aligned queries; NaN without any
    largest         the signed difference of the weight that differs most, the other trace's minus this one's
    query, key      the positions of that weight in this trace; None without aligned tokens
    """

    name: str
    head: int
    distance: float
    largest: float
    query: int | None
    key: int | None


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which tokens of two texts belong together, in order: equal ones, and runs of one length in place of each other.

    Tokens of one text alone stand between them.
    """

    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, left: tuple[str, ...] | None, right: tuple[str, ...] | None, lengths: tuple[int, int]) -> "Alignment":
        """By the tokens; by position where one side has none and both are equally long.

        >>> Alignment.of(("a", "cat"), ("a", "big", "cat"), (2, 3)).pairs
        ((0, 0), (None, 1), (1, 2))
        >>> Alignment.of(("I", "love", "you"), ("I", "hate", "you"), (3, 3)).pairs
        ((0, 0), (1, 1), (2, 2))
        """
        if left is None or right is None:
            return cls(tuple((at, at) for at in range(lengths[0])))
        pairs: list[Pair] = []
        for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
            if kind == "equal" or (kind == "replace" and b - a == d - c):
                pairs += zip(range(a, b), range(c, d), strict=True)
            else:
                pairs += [(at, None) for at in range(a, b)] + [(None, at) for at in range(c, d)]
        return cls(tuple(pairs))

    @property
    def common(self) -> tuple[list[int], list[int]]:
        """The positions of the tokens that belong together."""
        both = [(a, b) for a, b in self.pairs if a is not None and b is not None]
        return [a for a, _ in both], [b for _, b in both]


class AlignedWeights(NamedTuple):
    """The weights of one head in both traces on the rows and columns of an alignment; NaN where one lacks the token.

    bins   the numbers of queries and keys of a cell, where maps are compared; then each pair is the first of its bin
    """

    left: np.ndarray
    right: np.ndarray
    queries: Alignment
    keys: Alignment
    bins: tuple[int, int] = (1, 1)

    @property
    def difference(self) -> np.ndarray:
        """The other trace's weights minus this one's."""
        return np.asarray(self.right - self.left)


class Comparison:
    """Two traces, compared head by head; prints as a table, the most different heads first."""

    def __init__(self, left: Trace, right: Trace, sample: int = 0) -> None:
        if not isinstance(right, Trace):
            raise ArgumentError("compare-trace", found=type(right).__name__)
        if not len(left) or not len(right):
            raise ArgumentError("trace-empty")
        self.unpaired = tuple(set(left.names) ^ set(right.names)) if len(left) != len(right) else ()
        """The names of records that only one trace has, where one has more than the other."""
        heads = [[record.shape[1] for record in trace] for trace in (left, right)]
        if self.unpaired:
            common = [name for name in left.names if name in right.names]
            left, right = (trace._part(trace[name] for name in common) for trace in (left, right))
        if not len(left) or [one.shape[1] for one in left] != [one.shape[1] for one in right]:
            raise ArgumentError("compare-heads", left=_sizes(heads[0]), right=_sizes(heads[1]))
        self.left, self.right, self.sample = left, right, sample
        self.by_map = frozenset(
            layer for layer, pair in enumerate(zip(left, right, strict=True)) if not _check(*pair, sample)
        )
        """The numbers of the layers of which maps are compared: q and k were not kept."""

    def aligned(self, layer: int, head: int) -> AlignedWeights:
        """The weights of one head of both traces, aligned by tokens."""
        records = self.left[layer], self.right[layer]
        if layer in self.by_map:
            return _aligned_maps(records, self.sample, head)
        queries, keys = self.alignments(layer)
        found = []
        for side, record in enumerate(records):
            weights = np.asarray(to_numpy(record.weights(head=head))[self.sample], np.float64)
            rows, cols = ([pair[side] for pair in axis.pairs] for axis in (queries, keys))
            found.append(_placed(weights, rows, cols))
        return AlignedWeights(found[0], found[1], queries, keys)

    def alignments(self, layer: int) -> tuple[Alignment, Alignment]:
        """The alignment of the queries and of the keys of a layer."""
        one, other = self.left[layer], self.right[layer]
        sides = []
        for left, right, axis in ((one.query_tokens, other.query_tokens, 2), (one.key_tokens, other.key_tokens, 3)):
            tokens = (None if rows is None else tokens_of(rows, self.sample) for rows in (left, right))
            a, b = tokens
            sides.append(Alignment.of(a, b, (one.shape[axis], other.shape[axis])))
        return sides[0], sides[1]

    @cached_property
    def heads(self) -> tuple[Difference, ...]:
        """All heads in the order of the trace."""
        return tuple(
            self._difference(layer, head) for layer, record in enumerate(self.left) for head in range(record.shape[1])
        )

    def ranked(self) -> list[Difference]:
        """The heads by their distance, the most different first."""
        return sorted(self.heads, key=lambda one: -one.distance if np.isfinite(one.distance) else 1.0)

    def _difference(self, layer: int, head: int) -> Difference:
        found, name = self.aligned(layer, head), self.left[layer].name
        (rows, _), (cols, _) = found.queries.common, found.keys.common
        both = [at for at, (a, b) in enumerate(found.queries.pairs) if a is not None and b is not None]
        columns = [at for at, (a, b) in enumerate(found.keys.pairs) if a is not None and b is not None]
        if not both or not columns:
            return Difference(name, head, float("nan"), 0.0, None, None)
        left, right = (side[np.ix_(both, columns)] for side in (found.left, found.right))
        change = np.nan_to_num(right - left)
        row, column = np.unravel_index(int(np.abs(change).argmax()), change.shape)
        distance = js_distance(*(_completed(side[both], columns) for side in (found.left, found.right)))
        return Difference(name, head, distance, float(change[row, column]), rows[row], cols[column])

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def text(self, most: int | None = 20, lang: Language | None = None) -> str:
        """The table of the `most` heads that differ most."""
        from regard.views.tables import comparison_table

        return comparison_table(self, most, lang)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def html(self, path: str | os.PathLike[str], *, lang: Language | None = None) -> None:
        """Write one self-contained HTML page: both traces side by side, or their difference."""
        from regard.views.explorer.compared import write_comparison

        write_comparison(self, path, lang)

    def widget(self, *, lang: Language | None = None) -> Any:
        """The same in a notebook. Needs `pip install 'regard[notebook]'`."""
        from regard.views.explorer.compared import comparison_widget

        return comparison_widget(self, lang)


def js_distance(p: np.ndarray, q: np.ndarray) -> float:
    """The mean Jensen–Shannon distance of the rows of p and q, 0 to 1; rows that are all 0 or NaN are left out.

    >>> float(js_distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])))
    1.0
    """
    counted = np.isfinite(p).all(-1) & np.isfinite(q).all(-1) & (p > 0).any(-1) & (q > 0).any(-1)
    if not counted.any():
        return float("nan")
    p, q = p[counted], q[counted]
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)) / (2 * log(2))
    return float(np.sqrt(np.clip(divergence, 0, 1)).mean())


def _relative(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Σ p log(p / q) of each row; terms with p = 0 are 0."""
    ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.asarray((p * np.log(ratio)).sum(-1))


def _completed(rows: np.ndarray, columns: list[int]) -> np.ndarray:
    """The weights of some columns, and as one more column what goes to the other keys of the text."""
    listed = rows[:, columns]
    others = np.delete(rows, columns, axis=1)
    return np.concatenate([listed, np.where(np.isnan(others), 0, others).sum(-1, keepdims=True)], -1)


def _placed(weights: np.ndarray, rows: list[int | None], cols: list[int | None]) -> np.ndarray:
    found = np.full((len(rows), len(cols)), np.nan)
    own = [at for at, row in enumerate(rows) if row is not None], [at for at, col in enumerate(cols) if col is not None]
    taken = [row for row in rows if row is not None], [col for col in cols if col is not None]
    found[np.ix_(*own)] = weights[np.ix_(*taken)]
    return found


def _aligned_maps(records: tuple[Record, Record], sample: int, head: int) -> AlignedWeights:
    """The maps of one head in both traces, by position."""
    maps = [np.asarray(to_numpy(record.map)[sample, head], np.float64) for record in records]
    high, wide = (bin_size(n, bins) for n, bins in zip(records[0].shape[2:], maps[0].shape, strict=True))
    queries, keys = (
        Alignment(tuple((at * size, at * size) for at in range(n)))
        for n, size in zip(maps[0].shape, (high, wide), strict=True)
    )
    return AlignedWeights(maps[0], maps[1], queries, keys, (high, wide))


def _check(one: Record, other: Record, sample: int) -> bool:
    """Whether two records can be compared weight by weight; False for maps. Raises where neither is possible."""
    for record in (one, other):
        if not 0 <= sample < record.shape[0]:
            raise ArgumentError("choice-range", what="sample", asked=sample, last=record.shape[0] - 1)
    if not (one.has_weights and other.has_weights):
        sizes = [None if record.map is None else record.map.shape[2:] for record in (one, other)]
        if one.shape[2:] == other.shape[2:] and sizes[0] is not None and sizes[0] == sizes[1]:
            return False
        (other if one.has_weights else one).weights(rows=slice(0, 1))  # raises with the fix
    for record in (one, other):
        if record.shape[2] * record.shape[3] > MOST_WEIGHTS:
            raise TooLargeError("compare-too-large", name=record.name, T=record.shape[2], S=record.shape[3])
    for axis, side, rows in ((2, "queries", "query_tokens"), (3, "keys", "key_tokens")):
        named = getattr(one, rows) is not None and getattr(other, rows) is not None
        if not named and one.shape[axis] != other.shape[axis]:
            found = {"left": one.shape[axis], "right": other.shape[axis]}
            raise ArgumentError("compare-tokens", name=one.name, side=side, **found)
    return True


def _sizes(heads: list[int]) -> str:
    few = dict.fromkeys(heads)
    return f"{len(heads)} × {next(iter(few))}" if len(few) == 1 else f"{len(heads)} × {min(few)}–{max(few)}"
