"""Stitching: the calls of one module during a generation, merged into one Record.

A decoding step records one row of weights, as wide as the text at that step. Beam search reorders samples: the rows of
a sample are those of its ancestors. The records hold which call continues which; nothing here runs a model.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from regard.arrays import Array, concatenated, convert_like, to_numpy
from regard.axes import Shape, bin_width
from regard.errors import ArgumentError
from regard.exact_weights import ExactWeights
from regard.images import RecordImage, Side
from regard.masks.padding import Padding
from regard.messages import say
from regard.records import Record, Top, tokens_of
from regard.statistics_table import STATISTICS
from regard.trace.decode_runs import DecodeRun, Ends, is_interleaved, runs_for_texts, runs_of, start_of
from regard.trace.pooling import pool

TokenNames = Callable[[Sequence[int]], list[str]]
WEIGHTS_AT_ONCE = 2**22
"""Number of weights computed at once while a map is pooled: 16 MiB."""
MOST_KEYS = 2**25
"""Limit of samples × heads × keys of the result where the calls have far fewer: a million keys of 32 heads."""


def stitched_records(
    records: Iterable[Record], ids: Any = None, map: int | None = 256, token_names: TokenNames | None = None
) -> list[Record]:
    """One Record for each text that a module processed; a text of one call is unchanged.

    ids   the texts to follow, N L, as returned by a search: one Record per module, from the run that read most of them;
          without ids, the samples of the last step of each run
    token_names converts ids to tokens, where possible: the last generated token was never read
    """
    runs = runs_of(records)
    interleaved = next((run for run in runs if is_interleaved(run, runs)), None)
    if interleaved is not None:
        warnings.warn(say("stitch-in-turn", name=interleaved.module), stacklevel=3)  # at the call of Trace.stitched
    if ids is None:
        return [_stitched(run, None, map) for run in runs]
    texts = to_numpy(ids)
    return [_stitched(run, ends, map, texts, token_names) for run, ends in runs_for_texts(runs, texts)]


def _stitched(
    run: DecodeRun,
    ends: Ends | None,
    map: int | None,
    texts: np.ndarray | None = None,
    token_names: TokenNames | None = None,
) -> Record:
    calls, last = run.calls, len(run.calls) - 1
    if run.is_encoder or (last == 0 and ends is None):
        return calls[0].named(run.module)
    stitch = StitchedWeights(calls, ends or [(last, row) for row in range(calls[last].shape[0])])
    after = None if texts is None or token_names is None or ends is None else stitch.after(texts, token_names)
    return stitch.record(map, after)


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of one call in the result: its first `count` queries, at position `start`; its keys begin at `keys`.

    `rows` is the sample of the call for each sample of the result; −1 where the text had ended before.
    """

    record: Record
    start: int
    count: int
    keys: int
    rows: np.ndarray

    def by_sample(self, x: Array, empty: float) -> Array:
        """An array B H … of the call, in the sample order of the result."""
        if np.array_equal(self.rows, np.arange(len(x))):
            return x
        found = x[np.maximum(self.rows, 0).tolist()]
        found[np.flatnonzero(self.rows < 0).tolist()] = empty
        return found


class StitchedWeights(ExactWeights):
    """The calls of one module over one text, and for each sample of the result the call and the row where it ends."""

    lse = None

    def __init__(self, calls: Sequence[Record], ends: Ends) -> None:
        self.pieces = _pieces(calls, ends)
        last = self.pieces[-1]
        self.first = self.pieces[0].start
        self.T = last.start + last.count - self.first
        self.is_cross = last.record.kind == "cross"
        self.S = last.record.shape[-1] if self.is_cross else self.first + self.T
        self._check()

    def _check(self) -> None:
        """Raise ArgumentError where calls are missing, or where the first begins far after its keys."""
        end = self.first
        for piece in self.pieces:
            if piece.start != end:
                raise ArgumentError("stitch-gap", name=piece.record.name, start=piece.start, end=end)
            end = piece.start + piece.count
        B, H = len(self.pieces[0].rows), self.pieces[0].record.shape[1]
        held = sum(prod(piece.record.shape) for piece in self.pieces)
        if (wanted := B * H * self.S) > max(MOST_KEYS, 64 * held):
            raise ArgumentError("stitch-far", name=self.pieces[0].record.name, start=self.first, wanted=wanted)

    def end_of_text(self, sample: int) -> int:
        """The position after the last token that the sample read; it may end before others."""
        last = self.first + self.T
        return min((piece.start for piece in self.pieces if piece.rows[sample] < 0), default=last)

    def after(self, texts: np.ndarray, token_names: TokenNames) -> list[str]:
        """The token of each text after the last one that was read; "" where the text ends there."""
        places = [self.end_of_text(sample) for sample in range(len(texts))]
        return [
            token_names([int(text[place])])[0] if place < len(text) else ""
            for text, place in zip(texts, places, strict=True)
        ]

    def record(self, bins: int | None = 256, after: Sequence[str] | None = None) -> Record:
        """All rows as one Record. `after` is the token of each text after the last one that was read, where known."""
        calls = [piece.record for piece in self.pieces]
        first = calls[0]
        B, H = len(self.pieces[0].rows), first.shape[1]
        padding = self._padding()
        pooled = self._pooled(bins, B, H, padding)
        queries = self._tokens([piece.record.query_tokens for piece in self.pieces])
        return Record(
            shape=(B, H, self.T, self.S),
            name=first.module,
            kind=first.kind,
            fused=any(call.fused for call in calls),
            rest=next((call.rest for call in calls if call.rest), ""),
            query_tokens=queries,
            key_tokens=self._keys(queries),
            written=self._written(queries, after),
            # A first call that also read an assistant's proposals records the length of the prompt.
            prompt=min(self.pieces[0].count, first.prompt or self.pieces[0].count),
            padding=padding,
            exact=self,
            images=self._images(),
            **self._merged(),
            **pooled,
        )

    def _merged(self) -> dict[str, Any]:
        """The statistics that are merged without weights."""
        found: dict[str, Any] = {}
        for one in STATISTICS:
            parts = [getattr(piece.record, one.name) for piece in self.pieces]
            if one.merge == "queries" and all(part is not None for part in parts):
                found[one.name] = self._top(parts) if one.parts else self._concatenated_rows(parts, one.empty)
            elif one.merge == "last":
                found[one.name] = self._of_last_call(parts[-1], one.empty)
        return found

    def _images(self) -> tuple[RecordImage, ...]:
        """The pictures that the calls read, as keys of the whole text; also as its queries, if these begin with it."""
        side: Side = "keys" if self.is_cross or self.first else "both"
        last = self.pieces[-1]
        found: tuple[RecordImage, ...] = ()
        for image in last.record.images:
            samples = [None] if image.sample is None else np.flatnonzero(last.rows == image.sample).tolist()
            if image.is_on("keys"):
                found += tuple(replace(image, side=side, sample=sample) for sample in samples)
        return found

    def _of_last_call(self, values: Array | None, empty: float) -> Array | None:
        """An array B H S of the last call, which has all keys; None where a text had ended before it."""
        last = self.pieces[-1]
        if values is None or (last.rows < 0).any() or values.shape[-1] < self.S:
            return None
        return last.by_sample(values, empty)[..., : self.S]

    def _padding(self) -> Padding | None:
        """The padding of the queries from the calls, and no text after the end; keys are the same tokens."""
        known = [piece.record.padding or Padding() for piece in self.pieces]
        if all(one.queries is None and one.keys is None for one in known):
            return None
        both = list(zip(self.pieces, known, strict=True))
        queries = np.concatenate([_text(piece, one.queries, 2)[:, : piece.count] for piece, one in both], 1)
        first = _text(self.pieces[0], known[0].keys, 3)
        if self.is_cross:
            return Padding(queries, first)
        unseen = first[:, : self.first - self.pieces[0].keys] if self.first else first[:, :0]
        before = np.ones((len(queries), self.first - unseen.shape[1]), bool)
        return Padding(queries, np.concatenate([before, unseen, queries], 1))

    def block(self, rows: slice, cols: slice) -> Array:
        """Exact weights of rows × cols, from the calls that hold them."""
        parts = [self._part(piece, rows, cols) for piece in self._pieces_in(rows)]
        if not parts:
            like = self.pieces[0].record.weights(slice(0, 0))
            return convert_like(np.zeros((len(self.pieces[0].rows), like.shape[1], 0, cols.stop - cols.start)), like)
        return concatenated(parts, -2)

    def _pieces_in(self, rows: slice) -> list[Piece]:
        low, high = rows.start + self.first, rows.stop + self.first
        return [piece for piece in self.pieces if piece.start < high and piece.start + piece.count > low]

    def _part(self, piece: Piece, rows: slice, cols: slice) -> Array:
        """The weights of one call in the rectangle, with zeros for keys that it did not have."""
        top = max(0, rows.start + self.first - piece.start)
        bottom = min(piece.count, rows.stop + self.first - piece.start)
        S = piece.record.shape[-1]
        left, right = (min(max(0, at - piece.keys), S) for at in (cols.start, cols.stop))
        some = slice(left, right) if left < right else slice(0, 1)
        found = piece.by_sample(piece.record.weights(slice(top, bottom), some), 0.0)
        if left == right:
            return _padded(found[..., :0], 0, cols.stop - cols.start)
        return _padded(found, piece.keys + left - cols.start, cols.stop - cols.start)

    def _pooled(self, bins: int | None, B: int, H: int, padding: Padding | None) -> dict[str, Any]:
        """Map, received and sink, in one pass over the rows."""
        wanted = {
            one.name
            for one in STATISTICS
            if one.merge == "weights" and all(getattr(piece.record, one.name) is not None for piece in self.pieces)
        } - {"map"}
        return statistics_from_weights(self, (B, H, self.T, self.S), wanted, bins, padding)

    def _concatenated_rows(self, parts: list[Any], empty: float) -> Array:
        both = zip(self.pieces, parts, strict=True)
        return concatenated([piece.by_sample(part[:, :, : piece.count], empty) for piece, part in both], 2)

    def _top(self, parts: list[Top]) -> Top:
        """The top keys, by their positions in the result; a row with fewer keys is filled up with weights of 0."""
        k = max(part.weights.shape[-1] for part in parts)
        indices, weights = [], []
        for piece, part in zip(self.pieces, parts, strict=True):
            found = piece.by_sample(part.indices[:, :, : piece.count], 0) + piece.keys
            missing = k - found.shape[-1]
            own = piece.keys, piece.keys + piece.record.shape[-1]
            before = range(min(own[0], missing))
            others = np.array([*before, *range(own[1], own[1] + missing)][:missing], dtype=np.int64)
            more = np.broadcast_to(others, (*found.shape[:-1], missing))
            indices.append(concatenated([found, convert_like(more, found)], -1))
            weights.append(_padded(piece.by_sample(part.weights[:, :, : piece.count], 0.0), 0, k))
        return Top(concatenated(indices, 2), concatenated(weights, 2))

    def _tokens(self, parts: Sequence[tuple[tuple[str, ...], ...] | None]) -> tuple[tuple[str, ...], ...] | None:
        found: list[list[str]] = [[] for _ in self.pieces[0].rows]
        for piece, rows in zip(self.pieces, parts, strict=True):
            if rows is None:
                return None
            for text, row in zip(found, piece.rows.tolist(), strict=True):
                tokens = ("",) * piece.count if row < 0 else tokens_of(rows, row)[: piece.count]
                text.extend(tokens)
        return tuple(tuple(text) for text in found)

    def _written(
        self, queries: tuple[tuple[str, ...], ...] | None, after: Sequence[str] | None
    ) -> tuple[tuple[str, ...], ...] | None:
        """The last query of a call generates the first token of the next; for others the record of the call is used.

        None where no generated token is known.
        """
        recorded = self._tokens([piece.record.written or (("",) * piece.record.shape[2],) for piece in self.pieces])
        if queries is None or recorded is None:
            return None
        rows = [list(row) for row in recorded]
        for sample, (row, read) in enumerate(zip(rows, queries, strict=True)):
            for piece in self.pieces[1:]:
                at = piece.start - self.first
                row[at - 1] = read[at]
            if after is not None:
                row[self.end_of_text(sample) - self.first - 1] = after[sample]
        return tuple(map(tuple, rows)) if any(map(any, rows)) else None

    def _keys(self, queries: tuple[tuple[str, ...], ...] | None) -> tuple[tuple[str, ...], ...] | None:
        if not self.is_cross and self.first == 0:
            return queries
        piece = self.pieces[0 if self.is_cross else -1]  # the first call of cross-attention has the whole source
        keys, rows = piece.record.key_tokens, piece.rows.tolist()
        if keys is None or len(keys[0]) != self.S or min(rows) < 0:
            return None
        return keys if len(keys) == 1 else tuple(keys[row] for row in rows)


def statistics_from_weights(
    exact: ExactWeights, shape: Shape, wanted: Set[str], bins: int | None, padding: Padding | None
) -> dict[str, Any]:
    """A map of at most `bins` bins, and of "received" and "sink" those that are wanted, in one pass over the rows."""
    B, H, T, S = shape
    if not (bins or wanted) or not T:
        return {}
    high, wide = bin_width(T, bins or T), bin_width(S, bins or S)
    step = max(1, WEIGHTS_AT_ONCE // max(1, B * H * S * high)) * high
    maps, received, sink, counts = [], np.zeros((B, H, S)), np.zeros((B, H)), np.zeros((B, H), int)
    like, keys = None, None if padding is None else padding.first_keys()
    keys = np.zeros(B, int) if keys is None else to_numpy(keys)
    for at in range(0, T, step):
        like = exact.block(slice(at, min(T, at + step)), slice(0, S))
        block = to_numpy(like)
        not_masked = block.any(-1)
        maps.append(pool(block, not_masked.astype(int), high, wide)[0])
        received += block.sum(-2)
        sink += block[np.arange(B), :, :, keys].sum(-1) if S else 0
        counts += not_masked.sum(-1)
    found = {"map": np.concatenate(maps, -2), "received": received, "sink": sink / np.maximum(counts, 1)}
    names = {*wanted, *(["map"] if bins else [])}  # also where the calls have no maps
    return {name: convert_like(x.astype(maps[0].dtype), like) for name, x in found.items() if name in names}


def _text(piece: Piece, known: Array | None, axis: int) -> np.ndarray:
    """Which queries or keys of a call are text, in the sample order of the result; all, where padding is unknown."""
    shape = (piece.record.shape[0], piece.record.shape[axis])
    return np.asarray(piece.by_sample(np.ones(shape, bool) if known is None else np.array(to_numpy(known)), False))


def _pieces(calls: Sequence[Record], ends: Ends) -> list[Piece]:
    """The parts of all calls, found from the last call back along the ancestors; discarded tokens are left out."""
    pieces: list[Piece] = []
    rows = np.full(len(ends), -1)
    limit: int | None = None
    for at in range(max(at for at, _ in ends), -1, -1):
        call, start = calls[at], start_of(calls[at])
        for sample, (end_at, row) in enumerate(ends):
            if end_at == at:
                rows[sample] = row
        T, S = call.shape[2:]
        count = T if limit is None else min(T, limit - start)
        if count > 0:
            keys = 0 if call.kind == "cross" else max(0, start + T - S)
            pieces.append(Piece(call, start, count, keys, rows.copy()))
            limit = start
        if call.step is not None and call.step.parents:
            rows = np.array([*call.step.parents, -1])[rows]
    return pieces[::-1]


def _padded(x: Array, before: int, width: int) -> Array:
    """`x` with zeros around its last axis, `before` of them in front, so that it is `width` wide."""
    if x.shape[-1] == width:
        return x
    found = np.zeros((*x.shape[:-1], width), to_numpy(x[..., :0]).dtype)
    found[..., before : before + x.shape[-1]] = to_numpy(x)
    return convert_like(found, x)
