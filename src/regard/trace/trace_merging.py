"""Merging the records of several processes: each of them has some samples, some heads or some keys of the same calls.

Samples and heads are put side by side. Of keys, the softmax of a part is a share exp(LSE of the part − LSE of the
whole) of the whole softmax, so that LSE, largest score, entropy and top keys merge from their parts; sums over queries
are computed from exact weights. Nothing here communicates; `trace.processes` does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regard.arrays import Array, concatenated, convert_like, is_tensor, to_numpy
from regard.attention_call import WeightsFromQK
from regard.axes import Shape, distance_count
from regard.errors import ArgumentError, NotKeptError
from regard.exact_weights import ExactWeights, KnownMask, WeightsArray
from regard.images import RecordImage
from regard.masks.padding import Padding
from regard.messages import Listed
from regard.records import DecodeStep, Record, Top, tokens_of
from regard.statistics_table import STATISTICS
from regard.trace.file_parts import mask_tree
from regard.trace.stitching import WEIGHTS_AT_ONCE, statistics_from_weights

if TYPE_CHECKING:
    from regard.trace.trace import Trace

Split = Literal["samples", "heads", "keys", "queries"]
"""What the processes divide among themselves; `trace.placing` merges queries."""
AXES: dict[Split, int] = {"samples": 0, "heads": 1, "keys": 3, "queries": 2}
"""The axis of B H T S along which the parts lie side by side."""
Tokens = tuple[tuple[str, ...], ...]
Places = Sequence[np.ndarray]


def merge_traces(parts: "Sequence[Trace]", split: Split, map: int | None = 256) -> "Trace":
    """One Trace from the traces of all processes, in the order of their ranks; see `merge_records`.

    Raises ArgumentError where the traces do not hold records of the same names.
    """
    from regard.trace.trace import Trace

    first = parts[0].names
    for rank, part in enumerate(parts):
        if part.names != first:
            name, other = next(pair for pair in zip_longest(part.names, first, fillvalue="–") if pair[0] != pair[1])
            raise ArgumentError("gather-names", name=name, other=other, count=len(part), wanted=len(first), rank=rank)
    made, before = Trace(), dict[str, list[int]]()
    for records in zip(*parts, strict=True):
        made.append(merge_records(records, split, map, before.get(records[0].module)))
        before[records[0].module] = [record.shape[0] for record in records]
    made.texts, made.candidates, made.beams = parts[0].texts, parts[0].candidates, parts[0].beams
    made.temperatures = parts[0].temperatures
    for rank, part in enumerate(parts):
        if made.opening is None and part.opening is not None:
            name, head = part.opening
            others = sum(one[name].shape[1] for one in parts[:rank]) if split == "heads" and name in first else 0
            made.opening = name, head + others
    return made


def merge_records(
    parts: Sequence[Record], split: Split, map: int | None = 256, before: Sequence[int] | None = None
) -> Record:
    """The record of the whole call, from its parts in order.

    split    "samples" or "heads": every statistic is put side by side. "keys": each part has all queries, some keys,
             and an LSE over its own keys
    map      with "keys", the largest number of bins of the map along each axis, where the parts have maps
    before   the number of samples of each part in the previous call of a generation

    Raises ArgumentError for parts of different sizes, and NotKeptError for what parts of keys do not determine.

    >>> parts = [Record(shape=(1, 1, 1, 1), lse=np.zeros((1, 1, 1))) for _ in range(2)]
    >>> merge_records(parts, "keys").lse.round(4).tolist(), merge_records(parts, "heads").shape
    ([[[0.6931]]], (1, 2, 1, 1))
    """
    axis, first = AXES[split], parts[0]
    others = [part.shape[:axis] + part.shape[axis + 1 :] for part in parts]
    if len(set(others)) > 1:
        raise ArgumentError("gather-sizes", name=first.name, split=split, shapes=Listed([str(p.shape) for p in parts]))
    if split != "samples" and not all(_has_same_queries(first, part, split) for part in parts[1:]):
        raise ArgumentError("gather-queries", name=first.name, split=split)
    sizes = list(first.shape)
    sizes[axis] = sum(part.shape[axis] for part in parts)
    B, H, T, S = sizes
    common = first.changed(
        shape=(B, H, T, S),
        fused=any(part.fused for part in parts),
        rest=next((part.rest for part in parts if part.rest), ""),
        exact=None,
        **{one.name: None for one in STATISTICS},
    )
    if split == "keys":
        return _of_keys(parts, common, map)
    values = {one.name: [getattr(part, one.name) for part in parts] for one in STATISTICS}
    found = {name: _side_by_side(of, axis, first.name, split) for name, of in values.items()}
    merged = common.changed(**found, exact=_exact(parts, split, common.shape, found["lse"], None))
    return merged if split == "heads" else merged.changed(**_of_samples(parts, before))


def _has_same_queries(one: Record, other: Record, split: Split) -> bool:
    """False where tokens, ids, or of the same heads q show that two parts have other queries."""
    if one.query_tokens and other.query_tokens and one.query_tokens != other.query_tokens:
        return False
    if one.ids is not None and other.ids is not None and not np.array_equal(one.ids, other.ids):
        return False
    if split == "heads" or not (isinstance(one.exact, WeightsFromQK) and isinstance(other.exact, WeightsFromQK)):
        return True
    q, p = to_numpy(one.exact.q), to_numpy(other.exact.q)  # two devices may round them differently
    far = 0.1 * float(np.abs(q).max(initial=0))
    return q.shape == p.shape and bool(np.allclose(q, p, rtol=0.1, atol=far, equal_nan=True))


def _side_by_side(values: Sequence[Any], axis: int, name: str, split: Split) -> Any:
    """The values of all parts along an axis; None where a part has none."""
    if any(value is None for value in values):
        return None
    if isinstance(values[0], Top):
        return Top(*(_side_by_side([value[at] for value in values], axis, name, split) for at in range(2)))
    shapes = [tuple(value.shape) for value in values]
    if len({shape[:axis] + shape[axis + 1 :] for shape in shapes}) > 1:
        raise ArgumentError("gather-sizes", name=name, split=split, shapes=Listed([str(shape) for shape in shapes]))
    return concatenated([convert_like(value, values[0]) for value in values], axis)


# --- keys ------------------------------------------------------------------------------------------------


def _of_keys(parts: Sequence[Record], common: Record, map: int | None) -> Record:
    """The record of the whole from parts that have some of the keys each."""
    name = common.name
    if any(part.lse is None for part in parts):
        raise NotKeptError("gather-lse", name=name)
    if common.rest or any(part.sink_mass is not None for part in parts):
        raise ArgumentError("gather-rest", name=name)
    T, starts = common.shape[2], accumulate((part.shape[3] for part in parts), initial=0)
    cols = [np.arange(start, start + part.shape[3]) for start, part in zip(starts, parts, strict=False)]
    whole = Shares(parts, [np.arange(T)] * len(parts), cols, common.shape)
    found = whole.merged()
    tokens = [part.key_tokens for part in parts]
    padding = _padding(parts, ("keys",))
    exact = _exact(parts, "keys", common.shape, found["lse"], whole.shares)
    found |= sums_over_queries(parts, exact, common, map, padding)
    return common.changed(
        **found, exact=exact, key_tokens=_key_tokens(tokens), padding=padding, images=_images_of_keys(parts)
    )


class Shares:
    """Parts that have some queries and some keys of one call each, and their shares of the whole softmax.

    rows, cols   where the queries and the keys of each part are in the whole of `shape`, B H T S
    lse          of the whole, B H T
    shares       of each part, B H rows
    """

    def __init__(self, parts: Sequence[Record], rows: Places, cols: Places, shape: Shape) -> None:
        self.parts, self.rows, self.cols, self.shape = parts, rows, cols, shape
        each = [to_numpy(part.lse) for part in parts]
        self.lse = np.full(shape[:3], -np.inf, each[0].dtype)
        for own, at in zip(each, rows, strict=True):
            self.lse[..., at] = np.logaddexp(self.lse[..., at], own)
        with np.errstate(invalid="ignore"):
            self.shares = [
                np.where(own == -np.inf, 0, np.exp(own - self.lse[..., at])).astype(own.dtype)
                for own, at in zip(each, rows, strict=True)
            ]

    def merged(self) -> dict[str, Any]:
        """The statistics that all parts have and that merge from them alone, as `Statistic.keys` says."""
        found = {}
        for one in STATISTICS:
            rule = _RULES.get(one.keys or "")
            values = [getattr(part, one.name) for part in self.parts]
            if rule is not None and all(value is not None for value in values):
                found[one.name] = rule(self, values)
        return found

    def _lse(self, values: Sequence[Any]) -> Any:
        return convert_like(self.lse, values[0])

    def _max(self, values: Sequence[Any]) -> Any:
        found = np.full_like(self.lse, -np.inf)
        for value, at in zip(values, self.rows, strict=True):
            found[..., at] = np.maximum(found[..., at], to_numpy(value))
        return convert_like(found, values[0])

    def _terms(self, values: Sequence[Any]) -> Any:
        found = np.zeros_like(self.lse)
        for part, value, share, at in zip(self.parts, values, self.shares, self.rows, strict=True):
            with np.errstate(invalid="ignore"):
                more = self.lse[..., at] - to_numpy(part.lse)
                found[..., at] += np.where(share > 0, share * (to_numpy(value) + more), 0)
        found = np.where(np.isnan(self.lse), np.nan, np.maximum(found, 0)).astype(self.lse.dtype)
        return convert_like(found, values[0])

    def _sum(self, values: Sequence[Any]) -> Any:
        first = to_numpy(values[0])
        found = np.zeros((*self.shape[:3], first.shape[-1]), first.dtype)
        for value, share, at in zip(values, self.shares, self.rows, strict=True):
            found[..., at, :] += np.where(share[..., None] > 0, share[..., None] * to_numpy(value), 0)
        return convert_like(found, values[0])

    def _largest(self, tops: Sequence[Top]) -> Top:
        """The top keys of the whole are among those of the parts. Of equal keys the earlier is first."""
        k = max(top.weights.shape[-1] for top in tops)
        weights = np.full((*self.shape[:3], k), -1.0, self.lse.dtype)
        indices = np.full(weights.shape, self.shape[3], np.int64)
        for top, share, at, cols in zip(tops, self.shares, self.rows, self.cols, strict=True):
            more = to_numpy(top.weights) * share[..., None]
            both = np.concatenate([weights[..., at, :], more], -1)
            places = np.concatenate([indices[..., at, :], cols[to_numpy(top.indices)]], -1)
            order = np.lexsort((places, -both), axis=-1)[..., :k]
            weights[..., at, :] = np.take_along_axis(both, order, -1)
            indices[..., at, :] = np.take_along_axis(places, order, -1)
        indices, weights = np.where(weights < 0, 0, indices), np.maximum(weights, 0)
        return Top(convert_like(indices, tops[0].indices), convert_like(weights, tops[0].weights))

    def _beside(self, values: Sequence[Any]) -> Any:
        found = np.zeros((*self.shape[:2], self.shape[3]), to_numpy(values[0]).dtype)
        for value, cols in zip(values, self.cols, strict=True):
            found[..., cols] = to_numpy(value)
        return convert_like(found, values[0])


_RULES: dict[str, Callable[[Shares, Sequence[Any]], Any]] = {
    "lse": Shares._lse,
    "max": Shares._max,
    "terms": Shares._terms,
    "sum": Shares._sum,
    "largest": Shares._largest,
    "beside": Shares._beside,
}


def sums_over_queries(
    parts: Sequence[Record], exact: ExactWeights | None, common: Record, map: int | None, padding: Padding | None
) -> dict[str, Any]:
    """Sums over queries, as the map: each query has its own share, so they need exact weights."""
    wanted = [
        one
        for one in STATISTICS
        if one.keys == "weights" and all(getattr(part, one.name) is not None for part in parts)
    ]
    if not wanted:
        return {}
    if exact is None:
        raise NotKeptError("gather-weights", name=common.name, fields=Listed([one.name for one in wanted]))
    bins = map if any("R" in one.axes for one in wanted) else None
    by_distance = [one.name for one in wanted if "distances" in one.axes]
    others = {one.name for one in wanted if "R" not in one.axes} - {*by_distance}
    found = statistics_from_weights(exact, common.shape, others, bins, padding)
    return found | {name: _by_distance(exact, common.shape, padding) for name in by_distance}


def _by_distance(exact: ExactWeights, shape: Shape, padding: Padding | None) -> Array:
    """The share of the weight at distance 0, 1, 2–3, 4–7, …, B H D, from exact weights."""
    B, H, T, S = shape
    D = distance_count(T, S)
    offsets = None if padding is None else padding.offsets(T, S)
    first = np.full(B, S - T) if offsets is None else np.broadcast_to(to_numpy(offsets), (B,))
    total, counts = np.zeros((B, H, D)), np.zeros((B, H), int)
    starts = np.array([0, *(2**bin for bin in range(D - 1))])  # the least distance of each bin
    step = max(1, WEIGHTS_AT_ONCE // max(1, B * H * S))
    like = exact.block(slice(0, 0), slice(0, S))
    for at in range(0, T, step):
        rows = slice(at, min(T, at + step))
        weights = to_numpy(exact.block(rows, slice(0, S)))
        far = np.abs(np.arange(rows.start, rows.stop)[:, None] + first[:, None, None] - np.arange(S))  # B rows S
        bins = np.searchsorted(starts, far, side="right") - 1
        for bin in range(D):
            total[..., bin] += np.where((bins == bin)[:, None], weights, 0).sum((-2, -1))
        counts += weights.any(-1).sum(-1)
    return convert_like((total / np.maximum(counts, 1)[..., None]).astype(to_numpy(like).dtype), like)


def _key_tokens(tokens: Sequence[Tokens | None]) -> Tokens | None:
    """The tokens of all keys, one part after the other."""
    known = [rows for rows in tokens if rows is not None]
    if len(known) < len(tokens):
        return None
    samples = max(map(len, known))
    return tuple(tuple(token for rows in known for token in tokens_of(rows, at)) for at in range(samples))


def _images_of_keys(parts: Sequence[Record]) -> tuple[RecordImage, ...]:
    """The pictures among the keys, at their places in the whole."""
    found, start = [], 0
    for part in parts:
        for image in part.images:
            if image.is_on("keys"):
                at = None if image.positions is None else np.where(image.positions < 0, -1, image.positions + start)
                found.append(replace(image, first=image.first + start, positions=at, side="keys"))
        start += part.shape[3]
    return tuple(found)


# --- samples ---------------------------------------------------------------------------------------------


def _of_samples(parts: Sequence[Record], before: Sequence[int] | None) -> dict[str, Any]:
    """What a Record holds of its samples, besides statistics."""
    return {
        "query_tokens": _tokens([part.query_tokens for part in parts], parts),
        "key_tokens": _tokens([part.key_tokens for part in parts], parts),
        "written": _tokens([part.written for part in parts], parts),
        "ids": None if any(part.ids is None for part in parts) else concatenated([part.ids for part in parts]),
        "step": _step(parts, before),
        "padding": _padding(parts, ("queries", "keys")),
        "images": _images_of_samples(parts),
    }


def _tokens(tokens: Sequence[Tokens | None], parts: Sequence[Record]) -> Tokens | None:
    """One tuple for each sample of the whole; None where a part has none."""
    if any(rows is None for rows in tokens):
        return None
    both = zip(tokens, parts, strict=True)
    return tuple(tokens_of(rows, at) for rows, part in both if rows is not None for at in range(part.shape[0]))


def _step(parts: Sequence[Record], before: Sequence[int] | None) -> DecodeStep | None:
    """How the whole continues the previous call, whose samples lie side by side too."""
    steps = [part.step for part in parts if part.step is not None]
    if len(steps) < len(parts) or len({step.start for step in steps}) > 1:
        return None
    if not all(step.parents for step in steps):
        return DecodeStep(steps[0].start, ())
    counts = [part.shape[0] for part in parts] if before is None else before
    starts = accumulate(counts, initial=0)
    both = zip(steps, starts, strict=False)
    return DecodeStep(
        steps[0].start, tuple(at + start if at >= 0 else at for step, start in both for at in step.parents)
    )


def _padding(parts: Sequence[Record], sides: Sequence[str]) -> Padding | None:
    """The padding of the whole, with these sides put side by side and the other taken from the first part."""
    known = [part.padding or Padding() for part in parts]
    fields: dict[str, Array | None] = {"queries": known[0].queries, "keys": known[0].keys}
    axis = 0 if len(sides) == 2 else 1
    for side in sides:
        given = [getattr(one, side) for one in known]
        like = next((one for one in given if one is not None), None)
        if like is not None:
            sizes = [(part.shape[0], part.shape[2 if side == "queries" else 3]) for part in parts]
            every = [np.ones(size, bool) if x is None else to_numpy(x) for x, size in zip(given, sizes, strict=True)]
            fields[side] = convert_like(np.concatenate(every, axis), like)
    return None if fields["queries"] is None and fields["keys"] is None else Padding(**fields)


def _images_of_samples(parts: Sequence[Record]) -> tuple[RecordImage, ...]:
    """The pictures of each sample of the whole."""
    found, start = [], 0
    for part in parts:
        for image in part.images:
            samples = range(part.shape[0]) if image.sample is None else (image.sample,)
            found += [replace(image, sample=start + sample) for sample in samples]
        start += part.shape[0]
    return tuple(found)


# --- exact weights ---------------------------------------------------------------------------------------


def _exact(
    parts: Sequence[Record], split: Split, shape: Shape, lse: Array | None, shares: Sequence[np.ndarray] | None
) -> ExactWeights | None:
    """The exact weights of the whole; None where a part has none."""
    found = [WeightsArray(part.map) if part.exact is None and part.map_is_exact else part.exact for part in parts]
    known = tuple(one for one in found if one is not None)
    if len(known) < len(parts):
        return None
    from_qk = _from_qk(known, split, shape, lse)
    if from_qk is not None:
        return from_qk
    factors = None if shares is None else tuple(shares)
    sizes = tuple(part.shape[AXES[split]] for part in parts)
    mask = None if split == "keys" else _same_mask([one.known_mask for one in known], shape[:2])
    return JoinedWeights(known, split, sizes, lse, factors, mask)


def _from_qk(parts: Sequence[ExactWeights], split: Split, shape: Shape, lse: Array | None) -> WeightsFromQK | None:
    """q and k of the whole, where the parts differ in nothing else; they can be saved in a file."""
    known = [one for one in parts if isinstance(one, WeightsFromQK)]
    first = known[0] if known else None
    if first is None or len(known) < len(parts) or any(one.bias is not None for one in known):
        return None
    mask = _same_mask([one.known_mask for one in known], shape[:2])
    alike = {(one.scale, one.softcap, one.q.shape[1] / one.k.shape[1], one.v is None) for one in known}
    if mask is None or len(alike) > 1 or (split == "keys" and mask.mask is not None):
        return None
    axis = 2 if split == "keys" else AXES[split]  # of k and v; q and the LSE have no axis of keys
    own = lse if split == "keys" else concatenated([one.lse for one in known], axis)
    bound = None if mask.mask is None else mask._replace(like=first.q if is_tensor(first.q) else None).bind(*shape[2:])
    return replace(
        first,
        q=first.q if split == "keys" else concatenated([one.q for one in known], axis),
        k=concatenated([one.k for one in known], axis),
        v=None if first.v is None else concatenated([one.v for one in known], axis),
        lse=own,
        lead=mask.lead,
        bound=bound,
    )


def _same_mask(masks: Sequence[KnownMask | None], lead: Shape) -> KnownMask | None:
    """The mask of the whole, where all parts have the same one and it holds no arrays; else None."""
    known = [one for one in masks if one is not None]
    if len(known) < len(masks):
        return None
    trees = [(None, []) if one.mask is None else mask_tree(one.mask) for one in known]
    if any(arrays for _, arrays in trees) or any(tree != trees[0][0] for tree, _ in trees):
        return None
    return KnownMask(known[0].mask, lead, known[0].like)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JoinedWeights(ExactWeights):
    """The weights of all parts, side by side.

    sizes    the number of samples, heads or keys of each part
    shares   B H T for each part: the share of its keys in the softmax of each query; None for samples and heads
    """

    parts: tuple[ExactWeights, ...]
    split: Split
    sizes: tuple[int, ...]
    lse: Array | None = None
    shares: tuple[np.ndarray, ...] | None = None
    known_mask: KnownMask | None = None

    def block(self, rows: slice, cols: slice) -> Array:
        if self.shares is None:
            return concatenated([part.block(rows, cols) for part in self.parts], AXES[self.split])
        found: list[Array] = []
        start = 0
        for part, size, share in zip(self.parts, self.sizes, self.shares, strict=True):
            left, right = (min(max(0, at - start), size) for at in (cols.start, cols.stop))
            if left < right or (cols.start == cols.stop and not found):
                weights = part.block(rows, slice(left, right))
                found.append(weights * convert_like(share[:, :, rows, None].astype(to_numpy(weights).dtype), weights))
            start += size
        return concatenated(found, 3)

    def of_head(self, sample: int, head: int) -> ExactWeights:
        if self.shares is not None:
            b, h = slice(sample, sample + 1), slice(head, head + 1)
            parts = tuple(part.of_head(sample, head) for part in self.parts)
            return JoinedWeights(parts, self.split, self.sizes, None, tuple(share[b, h] for share in self.shares))
        at = [sample, head][AXES[self.split]]
        for part, size in zip(self.parts, self.sizes, strict=True):
            if at < size:
                return part.of_head(*((at, head) if self.split == "samples" else (sample, at)))
            at -= size
        raise IndexError(head)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(array for part in self.parts for array in part.arrays)

    @property
    def values(self) -> Array | None:
        found = [part.values for part in self.parts]
        if any(value is None for value in found):
            return None
        return concatenated(found, 2 if self.split == "keys" else AXES[self.split])
