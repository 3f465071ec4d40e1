"""Measures of single heads: entropy, sink, distance, value-weighted attention; one measure of all heads as a table."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regard.arrays import Array, to_kind_of, to_numpy
from regard.axes import bin_count, bin_width, distance_count
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.messages import Listed
from regard.records import Record, See
from regard.reference.statistics import entropy
from regard.trace.measures.row_blocks import blocks, places, sees_anything
from regard.trace.measures.visibility import Sight, sights
from regard.trace.trace import Trace


def mean_entropy(record: Record, sight: Sight | None = None) -> np.ndarray:
    """−Σ w ln w in nats, the mean over the queries that see anything, B H (Clark et al. 2019, section 3.3).

    What went to no key (`Record.sink_mass`) counts as one key more.

    0: always one key; ln n: evenly n keys. Padding is no query (`Sight`). From the entropies where they were kept with
    the LSE, else from exact weights. NotKeptError where there are neither.

    >>> from regard.trace import Trace
    >>> mean_entropy(Trace.from_weights(np.full((3, 4), 0.25))[0]).round(3)
    array([[1.386]])
    """
    sight = sight or Sight(record)
    if record.entropy is not None and record.lse is not None:
        looking = sees_anything(record.lse) & sight.queries[:, None]
        return _mean(np.where(looking, to_numpy(record.entropy), 0).sum(-1), looking.sum(-1))
    if not record.has_weights:
        raise NotKeptError("entropy-not-kept", name=record.name)
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in sight.blocks():
        sink = None if record.sink_mass is None else to_numpy(record.sink_mass[:, :, block.rows])
        total += np.where(block.looking, entropy(block.weights, sink), 0).sum(-1)
        count += block.looking.sum(-1)
    return _mean(total, count)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean


def sink_share(record: Record, sight: Sight | None = None) -> np.ndarray:
    """The mean weight of the first key over the queries that see anything, B H: 0 to 1.

    Heads with nothing to look for rest on the first token, whatever it is (Xiao et al. 2024, "Efficient streaming
    language models with attention sinks", section 3.1). The first key is the first of the text, and padding is no
    query (`Sight`). What `See(sink=True)` kept will do, except where the record did not know of its padding: then it
    needs exact weights.

    >>> from regard.trace import Trace
    >>> sink_share(Trace.from_weights(np.array([[1, 0], [0.5, 0.5]]))[0])
    array([[0.75]])
    """
    sight = sight or Sight(record)
    if record.sink is not None and (record.padding is not None or not sight.padded.any()):
        return np.asarray(to_numpy(record.sink))
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    if not record.shape[-1]:
        return total
    for block in sight.blocks():
        total += block.weights[np.arange(B), :, :, sight.first].sum(-1)
        count += block.looking.sum(-1)
    share: np.ndarray = total / np.maximum(count, 1)
    return share


def mean_distance(record: Record, sight: Sight | None = None) -> np.ndarray:
    """Σ w |query − key|, the mean over the queries that see anything, B H (Vig and Belinkov 2019).

    The last query stands at the last key; padding is no query (`Sight`). It needs exact weights; `distance_profile` may
    do without.

    >>> from regard.trace import Trace
    >>> mean_distance(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[0.75]])
    """
    B, H = record.shape[:2]
    sight = sight or Sight(record)
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in sight.blocks():
        far = _distances(sight, block.rows)
        total += np.einsum("bhrs,brs->bh", block.weights, far.astype(block.weights.dtype))
        count += block.looking.sum(-1)
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean


def distance_profile(record: Record) -> np.ndarray:
    """The share of the weight at distance 0, 1, 2–3, 4–7, … of query and key, B H D.

    Kept by `See(distance=True)`; from exact weights where it was not, or where the record did not know of its padding.

    >>> from regard.trace import Trace
    >>> distance_profile(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[[0.25, 0.75, 0.  ]]])
    """
    sight = Sight(record)
    if record.distance is not None and (record.padding is not None or sight.whole.all()):
        return np.asarray(to_numpy(record.distance))
    B, H, T, S = record.shape
    D = distance_count(T, S)
    total, count = np.zeros((B, H, D)), np.zeros((B, H), int)
    starts = np.array([0, *(2**bin for bin in range(D - 1))])  # the least distance of each bin
    for block in sight.blocks():
        far = _distances(sight, block.rows)
        bins = np.searchsorted(starts, far, side="right")[:, None] - 1  # B 1 r S
        for bin in range(D):
            total[..., bin] += np.where(bins == bin, block.weights, 0).sum((-2, -1))
        count += block.looking.sum(-1)
    return total / np.maximum(count, 1)[..., None]


def _distances(sight: Sight, rows: slice) -> np.ndarray:
    """How far each key is from the queries of some rows, B r S."""
    here = places(sight.record, rows) + (sight.offsets - sight.record.shape[-1] + sight.record.shape[-2])[:, None]
    return np.abs(here[..., None] - np.arange(sight.record.shape[-1]))


def value_lengths(v: Array, n_heads: int, W_o: Array | None = None) -> np.ndarray:
    """‖v_j W_o‖ for each head and key, B H S: how long a vector a key adds where it is looked at with weight 1.

    v is B G S Ev; W_o is (H·Ev) D, head after head, the transpose of `nn.Linear`'s weight. Without it, ‖v_j‖: a
    head whose projection shrinks what it moved then counts too much.

    >>> value_lengths(np.array([[[[3.0, 4.0], [0.0, 0.0]]]]), n_heads=2)
    array([[[5., 0.],
            [5., 0.]]])
    """
    values = np.asarray(to_numpy(v), dtype=np.float64)
    values = np.repeat(values, n_heads // values.shape[1], axis=1)  # B H S Ev
    if W_o is None:
        return np.linalg.norm(values, axis=-1)
    projection, Ev = np.asarray(to_numpy(W_o), dtype=np.float64), values.shape[-1]
    if projection.ndim != 2 or projection.shape[0] != n_heads * Ev:
        raise ArgumentError("values-projection", found=projection.shape, H=n_heads, Ev=Ev, wanted=n_heads * Ev)
    each = projection.reshape(n_heads, Ev, -1)
    gram = each @ each.swapaxes(1, 2)  # H Ev Ev: ‖v W‖² = v (W Wᵀ) vᵀ, without vectors as wide as the model
    squares = np.einsum("bhse,hef,bhsf->bhs", values, gram, values, optimize=True)
    return np.sqrt(np.maximum(squares, 0))


def value_weighted(record: Record, v: Array | None = None, W_o: Array | None = None, bins: int = 256) -> Record:
    """The record with each weight times the length of what it moves, α_ij ‖v_j W_o‖, each row summing to 1 again.

    A key may be looked at hard and give nothing: the first token often does (Kobayashi et al. 2020, "Attention is not
    only a weight"). A row that moves nothing is 0. The lengths are those kept by `See(values=True)`,
    or come from v and W_o as in `value_lengths`. NotKeptError where there are neither, or no exact weights.
    """
    See(map=bins)  # which says what is wrong with it
    lengths = _lengths(record, v, W_o)[:, :, None]  # B H 1 S

    def rectangle(rows: slice, cols: slice) -> Array:
        exact = record.weights(rows=rows)
        return to_kind_of(_weighed(np.asarray(to_numpy(exact)), lengths)[..., cols], exact)

    made = replace(record, lse=None, entropy=None, received=None, top=None, sink=None, distance=None, kept={})
    made = replace(made, sink_mass=None)  # it moves nothing
    return replace(made, map=_map(record, lengths, bins), rectangle=rectangle)


def _lengths(record: Record, v: Array | None, W_o: Array | None) -> np.ndarray:
    B, H, _, S = record.shape
    if v is None:
        if record.values is None:
            raise NotKeptError("values-not-kept", name=record.name)
        return np.asarray(to_numpy(record.values))
    shape = tuple(v.shape)
    if len(shape) != 4 or (shape[0], shape[2]) != (B, S) or not shape[1] or H % shape[1]:
        raise ArgumentError("values-shape", name=record.name, found=shape, B=B, H=H, S=S)
    return value_lengths(v, H, W_o)


def _weighed(weights: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    moved = np.where(weights > 0, weights * lengths.astype(weights.dtype), 0)  # what is hidden may hold anything
    total = moved.sum(-1, keepdims=True)
    found: np.ndarray = moved / np.where(total > 0, total, 1)
    return found


def _map(record: Record, lengths: np.ndarray, bins: int) -> Array:
    """The map of the new weights: summed over the keys of a bin, averaged over its queries that move anything."""
    B, H, T, S = record.shape
    high, wide = bin_width(T, bins), bin_width(S, bins)
    total = np.zeros((B, H, bin_count(T, bins), bin_count(S, bins)))
    count = np.zeros(total.shape[:3], int)
    for block in blocks(record):
        weights = _weighed(block.weights, lengths)
        row_bins, starts = np.unique(np.arange(block.rows.start, block.rows.stop) // high, return_index=True)
        summed = np.add.reduceat(weights, np.arange(0, S, wide), axis=-1)
        total[:, :, row_bins] += np.add.reduceat(summed, starts, axis=-2)
        count[:, :, row_bins] += np.add.reduceat(weights.any(-1).astype(int), starts, axis=-1)
    like = record.map if record.map is not None else record.kept.get("q")
    return to_kind_of((total / np.maximum(count, 1)[..., None]).astype(np.float32), like)


MEASURES: dict[str, Callable[[Record, Sight], np.ndarray]] = {
    "entropy": mean_entropy,
    "sink": sink_share,
    "distance": mean_distance,
}


def measured(trace: Trace, name: str) -> np.ndarray:
    """`entropy`, `sink` or `distance` of each head, L H: the mean over samples of what each sample has by itself.

    NaN where a layer lacks a head.
    """
    if name not in MEASURES:
        raise UnknownNameError("measure-unknown", asked=name, measures=Listed(MEASURES))
    if not len(trace):
        raise ArgumentError("trace-empty")
    found = np.full((len(trace), max(record.shape[1] for record in trace)), np.nan)
    for layer, sight in enumerate(sights(trace)):
        if sight.record.shape[0]:
            found[layer, : sight.record.shape[1]] = MEASURES[name](sight.record, sight).mean(0)
    return found
