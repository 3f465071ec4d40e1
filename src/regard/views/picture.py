"""A Picture: one head of one sample, as NumPy, ready to be drawn small or large.

Here a record, a head, a sample and a language are chosen and checked; how a Picture is drawn is not known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from regard.arrays import to_numpy
from regard.axes import in_range
from regard.errors import ArgumentError, NotKeptError
from regard.messages import LANGUAGES, Language, Listed, language
from regard.records import Record, tokens_of
from regard.trace.measures.row_blocks import pieces, sees_anything
from regard.trace.measures.visibility import Sight
from regard.trace.pooling import bin_size, pool
from regard.trace.token_merging import Merge, has_torn_characters, merged
from regard.trace.trace import Range, ScaleName, Trace
from regard.views.exact_part import Part, cut_out
from regard.views.labels import readable, row_label

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What is drawn of one head: cells R C, each `high` queries and `wide` keys large."""

    record: Record
    head: int
    sample: int
    cells: np.ndarray
    """R C, float64; exactly 0 where nobody may look, NaN where a query met NaN."""
    looking: np.ndarray
    """R: the queries of a row that look at anything."""
    high: int
    wide: int
    scale: ScaleName = "auto"
    first: float | None = None
    """The share of all attention that the first key receives, where it can be told; also when that key is not drawn."""
    first_key: int = 0
    """Which key that is: the first that is no padding."""

    @property
    def first_column(self) -> int:
        """Where the first key is drawn; -1 where it is outside of a part."""
        column = (self.first_key - self.origin[1]) // self.wide
        return column if 0 <= column < self.cells.shape[1] else -1

    @property
    def origin(self) -> tuple[int, int]:
        """The positions of the first query and the first key that are drawn."""
        record = self.record
        return (record.rows.start, record.cols.start) if isinstance(record, Part) else (0, 0)

    @property
    def even(self) -> float:
        """The share that the first key would receive, if each query looked evenly at all it may see."""
        return _even(self.record, self.sample)

    @property
    def queries(self) -> Tokens | None:
        """The tokens that look, one per row; None where a row is more than one of them, or nobody named them."""
        return _tokens(self.record.queries, self.sample) if self.high == 1 else None

    @property
    def row_labels(self) -> Tokens | None:
        """What stands beside each row: the token that its query has read and, where known, the one that it writes."""
        if self.queries is None or self.record.written is None:
            return self.queries
        return tuple(map(row_label, self.queries, readable(tokens_of(self.record.written, self.sample))))

    @property
    def keys(self) -> Tokens | None:
        """The tokens that are looked at, one per column; None likewise."""
        return _tokens(self.record.keys, self.sample) if self.wide == 1 else None

    def fitted(self, rows: int, cols: int) -> "Picture":
        """The same in at most so many rows and columns of cells."""
        R, C = self.cells.shape
        high, wide = bin_size(R, rows), bin_size(C, cols)
        if high == wide == 1:
            return self
        cells, looking = pool(self.cells, self.looking, high, wide)
        return replace(self, cells=cells, looking=looking, high=self.high * high, wide=self.wide * wide)


def picture(record: Record, head: int, sample: int, scale: ScaleName = "auto") -> Picture:
    """One head of one sample; NotKeptError where the record has no map.

    A scale that does without the first token leaves its cells empty: those of the keys that share a cell with it too.
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
        looking=_looking(record, head, sample, cells),
        high=bin_size(T, R),
        wide=bin_size(S, C),
        scale=scale,
        first_key=int(_sight(record).first[sample]),
    )
    return rescaled(replace(whole, first=first_share(whole)), scale)


def rescaled(whole: Picture, scale: ScaleName) -> Picture:
    """A picture of all keys by another scale, without the first token where that scale does without it."""
    told = replace(whole, scale=scale)
    return replace(told, cells=_without_first(told)) if scale in ("hidden", "renormalised") else told


def _without_first(whole: Picture) -> np.ndarray:
    """The cells, that column empty where the first key is; the others as they are, or brought to a sum of 1."""
    rest = np.array(whole.cells)
    if whole.first_column >= 0:
        rest[:, whole.first_column] = 0
    if whole.scale == "hidden":
        return rest
    sums = rest.sum(-1, keepdims=True)
    return np.divide(rest, sums, out=np.zeros_like(rest), where=sums != 0)


_LONG = 256
"""From so many keys on a first token that gets 30 % stands out, whoever may see it."""

_SIGHTS: WeakKeyDictionary[Record, Sight] = WeakKeyDictionary()
"""Of records that were drawn: which places are a text and no padding, found out once for all heads."""
_SHARES: WeakKeyDictionary[Record, np.ndarray] = WeakKeyDictionary()


def _sight(record: Record) -> Sight:
    whole = record.whole if isinstance(record, Part) else record
    if whole not in _SIGHTS:
        # A Sight that held its record would keep it alive for ever.
        _SIGHTS[whole] = Sight(whole.changed())
    return _SIGHTS[whole]


def _queries(record: Record, sample: int) -> np.ndarray:
    """T: which queries of a record, or of a part of one, are no padding."""
    queries = _sight(record).queries[sample]
    return queries[record.rows] if isinstance(record, Part) else queries


def _even(record: Record, sample: int) -> float:
    """What a query that looks evenly at all it may see gives to the first key, on average.

    Of a long text, where it is little under any of the usual masks, as if all were seen.
    """
    sight = _sight(record)
    if sight.record.shape[-1] > _LONG or sight.sees_all:
        return float(1 / max(1, sight.count[sample]))
    whole = record.whole if isinstance(record, Part) else record
    if whole not in _SHARES:
        _SHARES[whole] = _shares(sight)
    shares = _SHARES[whole][sample]
    shares = (shares[record.rows] if isinstance(record, Part) else shares)[_queries(record, sample)]
    return float(np.nanmean(shares)) if np.isfinite(shares).any() else 0.0


def _shares(sight: Sight) -> np.ndarray:
    """B T: what each query gives to the first key if it looks evenly; NaN of one that sees nothing."""
    B, _, T, S = sight.record.shape
    shares = np.full((B, T), np.nan)
    for rows in pieces(sight.record) if S else ():
        seen = np.any(sight.of(rows), axis=1)  # B r S
        count = seen.sum(-1)
        np.divide(seen[np.arange(B), :, sight.first], count, out=shares[:, rows], where=count > 0)
    return shares


def _looking(record: Record, head: int, sample: int, cells: np.ndarray) -> np.ndarray:
    """How many queries of each row look at anything: by the LSE where it was kept, else all or none of the row."""
    if isinstance(record, Part):
        return record.looking[sample, head].astype(int)
    T, R = record.shape[-2], cells.shape[0]
    high = bin_size(T, R)
    sizes = np.minimum(high, T - high * np.arange(R))
    if record.lse is None or not R:
        return np.where(cells.any(-1), sizes, 0)
    seeing = to_numpy(record.lse[sample, head]) != -np.inf
    counts = np.add.reduceat(seeing.astype(int), np.arange(0, T, high))
    return np.where(cells.any(-1), counts, 0)


def first_share(drawn: Picture, compute: bool = False) -> float | None:
    """How much of all attention the first key receives, 0 to 1; None where that cannot be told.

    Told before a Picture is fitted: a first column of many keys says nothing of the first key. `compute`: where
    nothing else tells, take the exact weights of that key, for every head and query, if they can be had. Beside padding
    that the record did not know of only they tell: what was kept counts its queries, and the place before the text.
    """
    record, total = drawn.record, drawn.looking.sum()
    if drawn.first is not None or record.shape[-1] < 2 or not total:
        return drawn.first
    if isinstance(record, Part):
        return _share_in_part(drawn)
    is_known = record.padding is not None and record.sink is not None
    if _sight(record).padded[drawn.sample] and not is_known:
        return _share_beside_padding(drawn, compute)
    if record.sink is not None:
        share = float(to_numpy(record.sink[drawn.sample, drawn.head]))
    elif drawn.wide == 1:
        share = (drawn.cells[:, 0] * drawn.looking).sum() / total
    elif record.received is not None:
        share = float(to_numpy(record.received[drawn.sample, drawn.head, 0])) / total
    elif compute and record.rectangle is not None:
        exact = to_numpy(record.weights(cols=slice(0, 1)))[drawn.sample, drawn.head]  # T 1
        share = exact.sum(dtype=np.float64) / total
    else:
        return None
    return float(share) if np.isfinite(share) else None


def share_of_no_key(drawn: Picture) -> float | None:
    """The mean share that goes to no key, as to a learned sink, over the queries drawn; None where there is none."""
    part = drawn.record if isinstance(drawn.record, Part) else None
    record = drawn.record if part is None else part.whole
    if record.sink_mass is None:
        return None
    mass = to_numpy(record.sink_mass[drawn.sample, drawn.head])
    mass = (mass if part is None else mass[part.rows])[_sight(drawn.record).queries[drawn.sample]]
    share = float(mass.mean(dtype=np.float64)) if mass.size else float("nan")
    return share if np.isfinite(share) else None


def _share_in_part(drawn: Picture) -> float | None:
    """What the rows of the part give to the first key, if that is in it."""
    counted = _queries(drawn.record, drawn.sample) & (drawn.looking > 0)
    if drawn.first_column < 0 or drawn.high > 1 or not counted.any():
        return None
    share = drawn.cells[counted, drawn.first_column].mean()
    return float(share) if np.isfinite(share) else None


def _share_beside_padding(drawn: Picture, compute: bool) -> float | None:
    record, first = drawn.record, drawn.first_key
    if drawn.cells.shape != record.shape[-2:] and not (compute and record.rectangle is not None):
        return None
    exact = to_numpy(record.weights(cols=slice(first, first + 1)))[drawn.sample, drawn.head, :, 0]
    counted = _queries(record, drawn.sample)
    if record.lse is not None:
        counted = counted & sees_anything(record.lse[drawn.sample, drawn.head])
    share = exact[counted].mean(dtype=np.float64) if counted.any() else np.nan
    return float(share) if np.isfinite(share) else None


def chosen_records(trace: Trace, layer: int | str | None) -> list[Record]:
    """The record that `layer` names or counts; all of them where it is None."""
    if not len(trace):
        raise ArgumentError("trace-empty")
    if layer is None:
        return list(trace)
    if isinstance(layer, str):
        return [trace[layer]]
    return [trace[in_range("layer", layer, len(trace))]]


def as_read(
    record: Record, sample: int, merge: Merge | None, rows: Range = None, cols: Range = None
) -> tuple[Record, int]:
    """The record whose tokens are what was asked for, all of them or a part, and the sample in it.

    None merges the parts of characters where every token would get its own label: else nobody could read them. In a
    part nothing is merged: rows and cols count tokens.
    """
    if rows is not None or cols is not None:
        if merge not in (None, "tokens"):
            raise ArgumentError("part-merged", merge=merge)
        return cut_out(record, sample, rows, cols), sample
    if merge == "tokens" or (merge is None and not (record.map_is_exact and has_torn_characters(record, sample))):
        return record, sample
    return merged(record, merge or "characters", sample), 0


def chosen_head(record: Record, head: int) -> int:
    """A head of the record, counted from the end where it is negative."""
    if not record.shape[1]:
        raise ArgumentError("choice-none", what="head", asked=head, name=record.name, shape=record.shape)
    return in_range("head", head, record.shape[1])


def chosen_heads(record: Record, head: int | Sequence[int] | None) -> list[int]:
    """The heads that are asked for, one or several in their order; all of them where none is.

    >>> chosen_heads(Record(shape=(1, 4, 2, 2)), [3, 0]), chosen_heads(Record(shape=(1, 2, 2, 2)), None)
    ([3, 0], [0, 1])
    """
    if head is None:
        chosen_head(record, 0)
        return list(range(record.shape[1]))
    several = isinstance(head, Sequence | range | np.ndarray) and not isinstance(head, str)
    asked: list[Any] = list(head) if several else [head]  # type: ignore[arg-type]
    if not asked:
        raise ArgumentError("choice-range", what="head", asked=head, last=record.shape[1] - 1)
    return [chosen_head(record, each) for each in asked]


def chosen_sample(record: Record, sample: int) -> int:
    """A sample of the record, likewise."""
    if not record.shape[0]:
        raise ArgumentError("choice-none", what="sample", asked=sample, name=record.name, shape=record.shape)
    return in_range("sample", sample, record.shape[0])


def chosen_language(lang: Language | None) -> Language:
    """The language asked for, else the one being spoken; ArgumentError for one that we do not speak."""
    if lang is not None and lang not in LANGUAGES:
        raise ArgumentError("option-unknown", option="lang", asked=lang, choices=Listed(LANGUAGES))
    return lang or language()


def check_scale(record: Record, scale: ScaleName) -> None:
    """Raise ArgumentError where a row cannot be brought to a sum of 1, as a part has not the whole of it."""
    if scale == "renormalised" and isinstance(record, Part) and not record.has_whole_rows:
        raise ArgumentError("part-renormalised", cols=record.shape[-1], S=record.whole.shape[-1])


def _tokens(tokens: tuple[Tokens, ...] | None, sample: int) -> Tokens | None:
    return None if tokens is None else readable(tokens_of(tokens, sample))
