"""A part of a text in full: the exact weights of some queries and keys, a record of its own that knows its place.

Here rows and cols are checked and cut out. A part is drawn as a whole of its size would be; only its labels and its
title ask where it stands.
"""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.arrays import to_numpy
from regard.errors import ArgumentError
from regard.records import Record, tokens_of
from regard.trace.trace import Range
from regard.views.labels import readable

MOST = 512
"""Rows, and columns, of a part: more could not be told apart in a figure of a page's width."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Part(Record):
    """Some rows and columns of a record; its shape, its map and its tokens are those of the part."""

    whole: Record
    rows: slice
    cols: slice
    looking: np.ndarray
    """B H r: the queries that look at anything, be it outside of the part."""

    def changed(self, **fields: Any) -> "Part":
        """As of every Record, and still a Part."""
        made = object.__new__(Part)
        made.__dict__.update(self.__dict__, **fields)
        return made

    @property
    def has_whole_rows(self) -> bool:
        """Whether every key is in it, so that a row sums to 1."""
        return self.shape[-1] == self.whole.shape[-1]


def cut_out(record: Record, sample: int, rows: Range, cols: Range) -> Record:
    """The part of the record, with the tokens of one sample; a record without any weights as it is.

    Raises ArgumentError where there is no such part or it is too large, and as `Record.weights`.

    >>> from regard.trace import Trace
    >>> cut_out(Trace.from_weights(np.eye(4), list("abcd"))[0], 0, slice(1, 3), range(2, 4)).keys
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
    return Part(
        shape=(B, H, high, wide),
        name=record.name,
        kind=record.kind,
        map=record.weights(down, across),
        queries=_tokens(record.queries, sample, down),
        keys=_tokens(record.keys, sample, across),
        written=_tokens(record.written, sample, down),
        prompt=prompt if 0 < prompt < high else None,
        whole=record,
        rows=down,
        cols=across,
        looking=_looking(record, down),
    )


def places(span: slice) -> str:
    """The first and the last position of a slice with plain ends.

    >>> places(slice(1000, 1064)), places(slice(7, 8))
    ('1000–1063', '7')
    """
    last = span.stop - 1
    return f"{span.start}–{last}" if last > span.start else str(last)


def _checked(name: str, asked: Range, length: int, record: str) -> slice:
    """A slice with plain ends inside of so many positions, and not empty."""
    if asked is None:
        return slice(0, length)
    if not isinstance(asked, slice | range) or asked.step not in (None, 1):
        raise ArgumentError("part-form", name=name, asked=asked)
    try:
        start = 0 if asked.start is None else operator.index(asked.start)
        stop = length if asked.stop is None else operator.index(asked.stop)
    except TypeError:
        raise ArgumentError("part-form", name=name, asked=asked) from None
    if isinstance(asked, slice):  # counted from the end where negative
        start, stop = (end + length if end < 0 else end for end in (start, stop))
    if stop <= start:
        raise ArgumentError("part-empty", name=name, asked=asked, record=record, most=min(64, length))
    if start < 0 or stop > length:
        size = min(stop - start, length)
        near = min(max(start, 0), length - size)
        raise ArgumentError(
            "part-range", name=name, asked=asked, record=record, last=length - 1, start=near, stop=near + size
        )
    return slice(start, stop)


def _tokens(rows: tuple[tuple[str, ...], ...] | None, sample: int, span: slice) -> tuple[tuple[str, ...]] | None:
    """Read before they are cut: how a vocabulary spells is told by all tokens, not by a few."""
    return None if rows is None else (readable(tokens_of(rows, sample))[span],)


def _looking(record: Record, rows: slice) -> np.ndarray:
    """By the LSE, or by whole rows where they are there; else nobody is known to see nothing."""
    lse = record.kept.get("lse") if record.lse is None else record.lse
    if lse is not None:
        return ~np.isneginf(to_numpy(lse.reshape(record.shape[:3])[:, :, rows]))
    whole = record.kept.get("weights", record.map)
    if whole is not None and tuple(whole.shape) == record.shape:
        return np.any(to_numpy(whole[:, :, rows]), axis=-1)
    return np.ones((*record.shape[:2], rows.stop - rows.start), bool)
