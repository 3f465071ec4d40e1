"""Picture: one head of one sample as NumPy cells, ready to draw at any size.

Selects and checks the record, head, sample and language. Independent of how a Picture is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary

import numpy as np

from regard.arrays import to_numpy
from regard.axes import in_range
from regard.errors import ArgumentError, NotKeptError
from regard.messages import LANGUAGES, Language, Listed, language
from regard.records import Record, tokens_of
from regard.trace.measures.visibility import Visibility, block_rows, not_fully_masked
from regard.trace.pooling import Merge, bin_size, has_split_characters, merged, pool
from regard.trace.trace import Range, ScaleName, Trace
from regard.views.exact_part import ExactPart, cut_out
from regard.views.labels import readable, row_label

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """The cells of one head, R C. Each cell covers `high` queries and `wide` keys."""

    record: Record
    head: int
    sample: int
    cells: np.ndarray
    """R C, float64; exactly 0 where masked, NaN where a query has NaN."""
    attending: np.ndarray
    """R: the number of queries of a row that attend to any key."""
    high: int
    wide: int
    scale: ScaleName = "auto"
    first: float | None = None
    """The share of all attention that the first key receives, if known; also if that key is not drawn."""
    first_key: int = 0
    """The index of the first key that is not padding."""

    @property
    def first_column(self) -> int:
        """The column of the first key; -1 if it is outside of a part."""
        column = (self.first_key - self.origin[1]) // self.wide
        return column if 0 <= column < self.cells.shape[1] else -1

    @property
    def origin(self) -> tuple[int, int]:
        """The positions of the first drawn query and key."""
        record = self.record
        return (record.rows.start, record.cols.start) if isinstance(record, ExactPart) else (0, 0)

    @property
    def even_share(self) -> float:
        """The share of the first key if each query attended evenly to all visible keys."""
        return _even(self.record, self.sample)

    @property
    def queries(self) -> Tokens | None:
        """The query tokens, one per row; None if a row covers several or there are no tokens."""
        return _tokens(self.record.query_tokens, self.sample) if self.high == 1 else None

    @property
    def row_labels(self) -> Tokens | None:
        """The label of each row: the token read and, if known, the token written."""
        if self.queries is None or self.record.written is None:
            return self.queries
        return tuple(map(row_label, self.queries, readable(tokens_of(self.record.written, self.sample))))

    @property
    def keys(self) -> Tokens | None:
        """The key tokens, one per column; None if a column covers several or there are no tokens."""
        return _tokens(self.record.key_tokens, self.sample) if self.wide == 1 else None

    def fitted(self, rows: int, cols: int) -> "Picture":
        """The picture pooled to at most `rows` × `cols` cells."""
        R, C = self.cells.shape
        high, wide = bin_size(R, rows), bin_size(C, cols)
        if high == wide == 1:
            return self
        cells, attending = pool(self.cells, self.attending, high, wide)
        return replace(self, cells=cells, attending=attending, high=self.high * high, wide=self.wide * wide)


def picture(record: Record, head: int, sample: int, scale: ScaleName = "auto") -> Picture:
    """One head of one sample. Raises NotKeptError if the record has no map.

    A scale without the first token clears the whole column of its cell, which may cover further keys.
    """
    check_scale(record, scale)
    if record.map is None:
        raise NotKeptError("map-not-kept", name=record.name)
    T, S = record.shape[-2:]
    cells = np.asarray(to_numpy(record.map[sample, head]), dtype=np.float64)
    R, C = cells.shape
    whole = Picture(
        record=record,
        head=head,
        sample=sample,
        cells=cells,
        attending=_attending(record, head, sample, cells),
        high=bin_size(T, R),
        wide=bin_size(S, C),
        scale=scale,
        first_key=int(_visibility_of(record).first[sample]),
    )
    return rescaled(replace(whole, first=first_share(whole)), scale)


def rescaled(whole: Picture, scale: ScaleName) -> Picture:
    """The picture with another scale; "hidden" and "renormalised" clear the first token."""
    changed = replace(whole, scale=scale)
    return replace(changed, cells=_without_first(changed)) if scale in ("hidden", "renormalised") else changed


def _without_first(whole: Picture) -> np.ndarray:
    """The cells with the column of the first key cleared; the others unchanged, or normalised to a sum of 1."""
    rest = np.array(whole.cells)
    if whole.first_column >= 0:
        rest[:, whole.first_column] = 0
    if whole.scale == "hidden":
        return rest
    sums = rest.sum(-1, keepdims=True)
    return np.divide(rest, sums, out=np.zeros_like(rest), where=sums != 0)


_LONG = 256
"""From this number of keys on, a first token with a share of 30 % stands out under any mask."""

_VISIBILITIES: WeakKeyDictionary[Record, Visibility] = WeakKeyDictionary()
"""Visibility of drawn records, which tells text from padding; computed once for all heads."""
_SHARES: WeakKeyDictionary[Record, np.ndarray] = WeakKeyDictionary()


def _visibility_of(record: Record) -> Visibility:
    whole = record.whole if isinstance(record, ExactPart) else record
    if whole not in _VISIBILITIES:
        # A Visibility that referred to the key itself would keep the record alive.
        _VISIBILITIES[whole] = Visibility(whole.changed())
    return _VISIBILITIES[whole]


def _queries(record: Record, sample: int) -> np.ndarray:
    """T: which queries of a record, or of a part, are not padding."""
    queries = _visibility_of(record).queries[sample]
    return queries[record.rows] if isinstance(record, ExactPart) else queries


def _even(record: Record, sample: int) -> float:
    """The mean share of the first key if each query attended evenly to all visible keys.

    For long texts as if all keys were visible: under the usual masks the share is small anyway.
    """
    visibility = _visibility_of(record)
    if visibility.record.shape[-1] > _LONG or visibility.is_unmasked:
        return float(1 / max(1, visibility.count[sample]))
    whole = record.whole if isinstance(record, ExactPart) else record
    if whole not in _SHARES:
        _SHARES[whole] = _shares(visibility)
    shares = _SHARES[whole][sample]
    shares = (shares[record.rows] if isinstance(record, ExactPart) else shares)[_queries(record, sample)]
    return float(np.nanmean(shares)) if np.isfinite(shares).any() else 0.0


def _shares(visibility: Visibility) -> np.ndarray:
    """B T: the share of the first key if each query attended evenly; NaN for a fully masked query."""
    B, _, T, S = visibility.record.shape
    shares = np.full((B, T), np.nan)
    for rows in block_rows(visibility.record) if S else ():
        seen = np.any(visibility.of(rows), axis=1)  # B r S
        count = seen.sum(-1)
        np.divide(seen[np.arange(B), :, visibility.first], count, out=shares[:, rows], where=count > 0)
    return shares


def _attending(record: Record, head: int, sample: int, cells: np.ndarray) -> np.ndarray:
    """R: the number of queries of each row that attend to any key: by the LSE if kept, else all or none of the row."""
    if isinstance(record, ExactPart):
        return record.attending[sample, head].astype(int)
    T, R = record.shape[-2], cells.shape[0]
    high = bin_size(T, R)
    sizes = np.minimum(high, T - high * np.arange(R))
    if record.lse is None or not R:
        return np.where(cells.any(-1), sizes, 0)
    seeing = to_numpy(record.lse[sample, head]) != -np.inf
    counts = np.add.reduceat(seeing.astype(int), np.arange(0, T, high))
    return np.where(cells.any(-1), counts, 0)


def first_share(drawn: Picture, compute: bool = False) -> float | None:
    """The share of all attention that the first key receives, 0 to 1; None if it is unknown.

    Call it before pooling: a first column of several keys does not show the first key. `compute`: if nothing else has
    it, compute the exact weights of that key for every head and query, if possible. With padding unknown to the record
    only exact weights are valid: kept sums include padded queries and count from the position before the text.
    """
    record, total = drawn.record, drawn.attending.sum()
    if drawn.first is not None or record.shape[-1] < 2 or not total:
        return drawn.first
    if isinstance(record, ExactPart):
        return _share_in_part(drawn)
    is_known = record.padding is not None and record.sink is not None
    if _visibility_of(record).padded[drawn.sample] and not is_known:
        return _share_beside_padding(drawn, compute)
    if record.sink is not None:
        share = float(to_numpy(record.sink[drawn.sample, drawn.head]))
    elif drawn.wide == 1:
        share = (drawn.cells[:, 0] * drawn.attending).sum() / total
    elif record.received is not None:
        share = float(to_numpy(record.received[drawn.sample, drawn.head, 0])) / total
    elif compute and record.exact is not None:
        exact = to_numpy(record.weights(cols=slice(0, 1)))[drawn.sample, drawn.head]  # T 1
        share = exact.sum(dtype=np.float64) / total
    else:
        return None
    return float(share) if np.isfinite(share) else None


def share_of_no_key(drawn: Picture) -> float | None:
    """The mean share that goes to no key (a learned sink) over the drawn queries; None without such a sink."""
    part = drawn.record if isinstance(drawn.record, ExactPart) else None
    record = drawn.record if part is None else part.whole
    if record.sink_mass is None:
        return None
    mass = to_numpy(record.sink_mass[drawn.sample, drawn.head])
    mass = (mass if part is None else mass[part.rows])[_queries(drawn.record, drawn.sample)]
    share = float(mass.mean(dtype=np.float64)) if mass.size else float("nan")
    return share if np.isfinite(share) else None


def _share_in_part(drawn: Picture) -> float | None:
    """The share of the first key in the rows of the part, if the part contains it."""
    counted = _queries(drawn.record, drawn.sample) & (drawn.attending > 0)
    if drawn.first_column < 0 or drawn.high > 1 or not counted.any():
        return None
    share = drawn.cells[counted, drawn.first_column].mean()
    return float(share) if np.isfinite(share) else None


def _share_beside_padding(drawn: Picture, compute: bool) -> float | None:
    record, first = drawn.record, drawn.first_key
    if drawn.cells.shape != record.shape[-2:] and not (compute and record.exact is not None):
        return None
    exact = to_numpy(record.weights(cols=slice(first, first + 1)))[drawn.sample, drawn.head, :, 0]
    counted = _queries(record, drawn.sample)
    if record.lse is not None:
        counted = counted & not_fully_masked(record.lse[drawn.sample, drawn.head])
    share = exact[counted].mean(dtype=np.float64) if counted.any() else np.nan
    return float(share) if np.isfinite(share) else None


def chosen_records(trace: Trace, layer: int | str | None) -> list[Record]:
    """The record with this name or index; all records for None."""
    if not len(trace):
        raise ArgumentError("trace-empty")
    if layer is None:
        return list(trace)
    if isinstance(layer, str):
        return [trace[layer]]
    return [trace[in_range("layer", layer, len(trace))]]


def merged_or_cut(
    record: Record, sample: int, merge: Merge | None, rows: Range = None, cols: Range = None
) -> tuple[Record, int]:
    """The record with merged tokens, or its part, and the index of the sample in it.

    `merge=None` merges parts of characters where every token has a label of its own, as they would be unreadable. Parts
    are never merged: rows and cols count tokens.
    """
    if rows is not None or cols is not None:
        if merge not in (None, "tokens"):
            raise ArgumentError("part-merged", merge=merge)
        return cut_out(record, sample, rows, cols), sample
    if merge == "tokens" or (merge is None and not (record.map_is_exact and has_split_characters(record, sample))):
        return record, sample
    return merged(record, merge or "characters", sample), 0


def chosen_head(record: Record, head: int) -> int:
    """The index of a head; negative values count from the end."""
    if not record.shape[1]:
        raise ArgumentError("choice-none", what="head", asked=head, name=record.name, shape=record.shape)
    return in_range("head", head, record.shape[1])


def chosen_heads(record: Record, head: int | Sequence[int] | None) -> list[int]:
    """The requested heads, one or several in the given order; all for None.

    >>> chosen_heads(Record(shape=(1, 4, 2, 2)), [3, 0]), chosen_heads(Record(shape=(1, 2, 2, 2)), None)
    ([3, 0], [0, 1])
    """
    if head is None:
        chosen_head(record, 0)
        return list(range(record.shape[1]))
    several = isinstance(head, Sequence | range | np.ndarray) and not isinstance(head, str)
    heads: list[Any] = list(head) if several else [head]  # type: ignore[arg-type]
    if not heads:
        raise ArgumentError("choice-range", what="head", asked=head, last=record.shape[1] - 1)
    return [chosen_head(record, each) for each in heads]


def chosen_sample(record: Record, sample: SupportsIndex) -> int:
    """The index of a sample; negative values count from the end."""
    if not record.shape[0]:
        raise ArgumentError("choice-none", what="sample", asked=sample, name=record.name, shape=record.shape)
    return in_range("sample", sample, record.shape[0])


def chosen_language(lang: Language | None) -> Language:
    """The requested language, by default the current one. Raises ArgumentError for an unknown language."""
    if lang is not None and lang not in LANGUAGES:
        raise ArgumentError("option-unknown", option="lang", asked=lang, choices=Listed(LANGUAGES))
    return lang or language()


def check_scale(record: Record, scale: ScaleName) -> None:
    """Raise ArgumentError if the scale normalises rows but the part does not contain all keys."""
    if scale == "renormalised" and isinstance(record, ExactPart) and not record.has_whole_rows:
        raise ArgumentError("part-renormalised", cols=record.shape[-1], S=record.whole.shape[-1])


def _tokens(tokens: tuple[Tokens, ...] | None, sample: int) -> Tokens | None:
    return None if tokens is None else readable(tokens_of(tokens, sample))
