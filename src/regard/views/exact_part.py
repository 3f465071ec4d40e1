"""Exact weights of a range of queries and keys, as a Record that knows its position in the whole map.

Checks `rows` and `cols` and cuts them out. A part is drawn like a whole map of its size; only labels and title use its
position.
"""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError
from regard.exact_weights import WeightsArray
from regard.records import Record, tokens_of
from regard.trace.trace import Range
from regard.views.labels import readable

MOST = 512
"""The most rows, and columns, of a part: more could not be distinguished in a figure as wide as a page."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExactPart(Record):
    """A range of rows and columns of a record. Shape, map and tokens are those of the part."""

    whole: Record
    rows: slice
    cols: slice
    attending: np.ndarray
    """B H r: whether a query attends to any key, inside or outside of the part."""

    def changed(self, **fields: Any) -> "ExactPart":
        """As `Record.changed`, but returns an ExactPart."""
        made = object.__new__(ExactPart)
        made.__dict__.update(self.__dict__, **fields)
        return made

    @property
    def has_whole_rows(self) -> bool:
        """Whether the part contains every key, so that each row sums to 1."""
        return self.shape[-1] == self.whole.shape[-1]


def cut_out(record: Record, sample: int, rows: Range, cols: Range) -> Record:
    """The part of the record with the tokens of one sample; a record without weights is returned unchanged.

    Raises ArgumentError for an empty, invalid or too large range, and as `Record.weights`.

    >>> from regard.trace import Trace
    >>> cut_out(Trace.from_weights(np.eye(4), list("abcd"))[0], 0, slice(1, 3), range(2, 4)).key_tokens
    (('c', 'd'),)
    """
    B, H, T, S = record.shape
    if not T or not S:
        return record
    down, across = _checked("rows", rows, T, record.name), _checked("cols", cols, S, record.name)
    high, wide = down.stop - down.start, across.stop - across.start
    if max(high, wide) > MOST:
        raise ArgumentError("part-too-large", rows=high, cols=wide, most=MOST)
    prompt = 0 if record.prompt is None else record.prompt - down.start
    return ExactPart(
        shape=(B, H, high, wide),
        name=record.name,
        kind=record.kind,
        map=record.weights(down, across),
        query_tokens=_tokens(record.query_tokens, sample, down),
        key_tokens=_tokens(record.key_tokens, sample, across),
        written=_tokens(record.written, sample, down),
        prompt=prompt if 0 < prompt < high else None,
        whole=record,
        rows=down,
        cols=across,
        attending=_attending(record, down),
    )


def position_range(span: slice) -> str:
    """The first and last position of a slice with non-negative ends.

    >>> position_range(slice(1000, 1064)), position_range(slice(7, 8))
    ('1000–1063', '7')
    """
    last = span.stop - 1
    return f"{span.start}–{last}" if last > span.start else str(last)


def _checked(name: str, requested: Range, length: int, record: str) -> slice:
    """The range as a slice with non-negative ends within `length` positions, not empty."""
    if requested is None:
        return slice(0, length)
    if not isinstance(requested, slice | range) or requested.step not in (None, 1):
        raise ArgumentError("part-form", name=name, asked=requested)
    try:
        start = 0 if requested.start is None else operator.index(requested.start)
        stop = length if requested.stop is None else operator.index(requested.stop)
    except TypeError:
        raise ArgumentError("part-form", name=name, asked=requested) from None
    if isinstance(requested, slice):  # negative ends count from the end
        start, stop = (end + length if end < 0 else end for end in (start, stop))
    if stop <= start:
        raise ArgumentError("part-empty", name=name, asked=requested, record=record, most=min(64, length))
    if start < 0 or stop > length:
        size = min(stop - start, length)
        near = min(max(start, 0), length - size)
        raise ArgumentError(
            "part-range", name=name, asked=requested, record=record, last=length - 1, start=near, stop=near + size
        )
    return slice(start, stop)


def _tokens(rows: tuple[tuple[str, ...], ...] | None, sample: int, span: slice) -> tuple[tuple[str, ...]] | None:
    """Decode the tokens before slicing: the spelling of a vocabulary is detected from all tokens."""
    return None if rows is None else (readable(tokens_of(rows, sample))[span],)


def _attending(record: Record, rows: slice) -> np.ndarray:
    """B H r: whether each query attends to any key, by the LSE or by complete rows; without either, True for all."""
    exact = record.exact
    lse = exact.lse if record.lse is None and exact is not None else record.lse
    if lse is not None:
        return ~np.isneginf(to_numpy(lse.reshape(record.shape[:3])[:, :, rows]))
    whole = exact.weights if isinstance(exact, WeightsArray) else record.map
    if whole is not None and tuple(whole.shape) == record.shape:
        return np.any(to_numpy(whole[:, :, rows]), axis=-1)
    return np.ones((*record.shape[:2], rows.stop - rows.start), bool)
