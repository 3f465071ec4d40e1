"""Entropy, sink, distance and value-weighted attention of each head; `measure_heads` takes one over a whole Trace."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from regard.arrays import Array, convert_like, to_numpy
from regard.axes import bin_count, bin_width, distance_count
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.exact_weights import ExactWeights, WeightsArray
from regard.messages import Listed
from regard.records import Record, See
from regard.reference.statistics import entropy
from regard.statistics_table import STATISTICS
from regard.trace.measures.row_blocks import blocks, not_fully_masked, places
from regard.trace.measures.visibility import Visibility, visibilities
from regard.trace.trace import Trace


def mean_entropy(record: Record, visibility: Visibility | None = None) -> np.ndarray:
    """−Σ w ln w in nats, the mean over the queries that are not fully masked, B H (Clark et al. 2019, section 3.3).

    Attention that goes to no key (`Record.sink_mass`) counts as one more key.

    0: always one key; ln n: n keys evenly. Padding queries are left out (`Visibility`). Uses kept entropies and LSE, or
    exact weights. NotKeptError where there are neither.

    >>> from regard.trace import Trace
    >>> mean_entropy(Trace.from_weights(np.full((3, 4), 0.25))[0]).round(3)
    array([[1.386]])
    """
    visibility = visibility or Visibility(record)
    if record.entropy is not None and record.lse is not None:
        valid = not_fully_masked(record.lse) & visibility.queries[:, None]
        return _mean(np.where(valid, to_numpy(record.entropy), 0).sum(-1), valid.sum(-1))
    if not record.has_weights:
        raise NotKeptError("entropy-not-kept", name=record.name)
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in visibility.blocks():
        sink = None if record.sink_mass is None else to_numpy(record.sink_mass[:, :, block.rows])
        total += np.where(block.valid, entropy(block.weights, sink), 0).sum(-1)
        count += block.valid.sum(-1)
    return _mean(total, count)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean


def sink_share(record: Record, visibility: Visibility | None = None) -> np.ndarray:
    """The mean weight of the first key over the queries that are not fully masked, B H: 0 to 1.

    Heads that need no key attend to the first token, whatever it is (Xiao et al. 2024, "Efficient streaming language
    models with attention sinks", section 3.1). The first key is the first of the text, and padding queries are left out
    (`Visibility`). The value kept by `See(sink=True)` is used, except where padding was unknown: then exact weights are
    needed.

    >>> from regard.trace import Trace
    >>> sink_share(Trace.from_weights(np.array([[1, 0], [0.5, 0.5]]))[0])
    array([[0.75]])
    """
    visibility = visibility or Visibility(record)
    if record.sink is not None and (record.padding is not None or not visibility.padded.any()):
        return np.asarray(to_numpy(record.sink))
    B, H = record.shape[:2]
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    if not record.shape[-1]:
        return total
    for block in visibility.blocks():
        total += block.weights[np.arange(B), :, :, visibility.first].sum(-1)
        count += block.valid.sum(-1)
    share: np.ndarray = total / np.maximum(count, 1)
    return share


def mean_distance(record: Record, visibility: Visibility | None = None) -> np.ndarray:
    """Σ w |query − key|, the mean over the queries that are not fully masked, B H (Vig and Belinkov 2019).

    The last query is aligned with the last key; padding queries are left out (`Visibility`). Needs exact weights;
    `distance_profile` may not.

    >>> from regard.trace import Trace
    >>> mean_distance(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[0.75]])
    """
    B, H = record.shape[:2]
    visibility = visibility or Visibility(record)
    total, count = np.zeros((B, H)), np.zeros((B, H), int)
    for block in visibility.blocks():
        far = _distances(visibility, block.rows)
        total += np.einsum("bhrs,brs->bh", block.weights, far.astype(block.weights.dtype))
        count += block.valid.sum(-1)
    mean: np.ndarray = total / np.maximum(count, 1)
    return mean


def distance_profile(record: Record) -> np.ndarray:
    """The share of the weight at distance 0, 1, 2–3, 4–7, … of query and key, B H D.

    Kept by `See(distance=True)`; else, or where padding was unknown, computed from exact weights.

    >>> from regard.trace import Trace
    >>> distance_profile(Trace.from_weights(np.eye(4)[[0, 0, 1, 2]])[0])
    array([[[0.25, 0.75, 0.  ]]])
    """
    visibility = Visibility(record)
    if record.distance is not None and (record.padding is not None or visibility.whole.all()):
        return np.asarray(to_numpy(record.distance))
    B, H, T, S = record.shape
    D = distance_count(T, S)
    total, count = np.zeros((B, H, D)), np.zeros((B, H), int)
    starts = np.array([0, *(2**bin for bin in range(D - 1))])  # the least distance of each bin
    for block in visibility.blocks():
        far = _distances(visibility, block.rows)
        bins = np.searchsorted(starts, far, side="right")[:, None] - 1  # B 1 r S
        for bin in range(D):
            total[..., bin] += np.where(bins == bin, block.weights, 0).sum((-2, -1))
        count += block.valid.sum(-1)
    return total / np.maximum(count, 1)[..., None]


def _distances(visibility: Visibility, rows: slice) -> np.ndarray:
    """The distance of each key from the queries of some rows, B r S."""
    here = (
        places(visibility.record, rows)
        + (visibility.offsets - visibility.record.shape[-1] + visibility.record.shape[-2])[:, None]
    )
    return np.abs(here[..., None] - np.arange(visibility.record.shape[-1]))


def value_norms(v: Array, n_heads: int, W_o: Array | None = None) -> np.ndarray:
    """‖v_j W_o‖ for each head and key, B H S: the norm of the vector that a key contributes at weight 1.

    v is B G S Ev; W_o is (H·Ev) D, head after head, the transpose of `nn.Linear`'s weight. Without it, ‖v_j‖, which
    overestimates a head whose projection shrinks its values.

    >>> value_norms(np.array([[[[3.0, 4.0], [0.0, 0.0]]]]), n_heads=2)
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
    gram = each @ each.swapaxes(1, 2)  # H Ev Ev: ‖v W‖² = v (W Wᵀ) vᵀ, without vectors of width d_model
    squares = np.einsum("bhse,hef,bhsf->bhs", values, gram, values, optimize=True)
    return np.sqrt(np.maximum(squares, 0))


def value_weighted(record: Record, v: Array | None = None, W_o: Array | None = None, bins: int = 256) -> Record:
    """The record with each weight times the norm of its value vector, α_ij ‖v_j W_o‖, normalised to rows that sum to 1.

    A key may have a large weight and contribute nothing, as the first token often does (Kobayashi et al. 2020,
    "Attention is not only a weight"). A row that contributes nothing is 0. The norms are those kept by
    `See(values=True)`, or computed from v and W_o by `value_norms`. NotKeptError where there are neither, or no exact
    weights.
    """
    See(map=bins)  # validates it
    norms = _norms(record, v, W_o)[:, :, None]  # B H 1 S
    changed = {one.name: None for one in STATISTICS if one.computed}  # also `sink_mass`: a sink has no value vector
    return record.changed(**changed).changed(map=_map(record, norms, bins), exact=ValueWeights(record, norms))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueWeights(ExactWeights):
    """The weights of a record times the norms of the values, B H 1 S, normalised to rows that sum to 1."""

    record: Record
    norms: np.ndarray
    lse: None = None

    def block(self, rows: slice, cols: slice) -> Array:
        exact = self.record.weights(rows=rows)
        return convert_like(_value_weighted(np.asarray(to_numpy(exact)), self.norms)[..., cols], exact)

    def of_head(self, sample: int, head: int) -> ExactWeights:
        record, b, h = self.record, slice(sample, sample + 1), slice(head, head + 1)
        if record.exact is None:
            return WeightsArray(self.block(slice(0, record.shape[2]), slice(0, record.shape[3]))[b, h])
        alone = record.changed(shape=(1, 1, *record.shape[2:]), map=None, exact=record.exact.of_head(sample, head))
        return ValueWeights(alone, self.norms[b, h])


def _norms(record: Record, v: Array | None, W_o: Array | None) -> np.ndarray:
    B, H, _, S = record.shape
    if v is None:
        if record.value_norms is None:
            raise NotKeptError("values-not-kept", name=record.name)
        return np.asarray(to_numpy(record.value_norms))
    shape = tuple(v.shape)
    if len(shape) != 4 or (shape[0], shape[2]) != (B, S) or not shape[1] or H % shape[1]:
        raise ArgumentError("values-shape", name=record.name, found=shape, B=B, H=H, S=S)
    return value_norms(v, H, W_o)


def _value_weighted(weights: np.ndarray, norms: np.ndarray) -> np.ndarray:
    moved = np.where(weights > 0, weights * norms.astype(weights.dtype), 0)  # masked values may be NaN
    total = moved.sum(-1, keepdims=True)
    found: np.ndarray = moved / np.where(total > 0, total, 1)
    return found


def _map(record: Record, norms: np.ndarray, bins: int) -> Array:
    """The map of the new weights: summed over the keys of a bin, averaged over its queries that are not 0."""
    B, H, T, S = record.shape
    high, wide = bin_width(T, bins), bin_width(S, bins)
    total = np.zeros((B, H, bin_count(T, bins), bin_count(S, bins)))
    count = np.zeros(total.shape[:3], int)
    for block in blocks(record):
        weights = _value_weighted(block.weights, norms)
        row_bins, starts = np.unique(np.arange(block.rows.start, block.rows.stop) // high, return_index=True)
        summed = np.add.reduceat(weights, np.arange(0, S, wide), axis=-1)
        total[:, :, row_bins] += np.add.reduceat(summed, starts, axis=-2)
        count[:, :, row_bins] += np.add.reduceat(weights.any(-1).astype(int), starts, axis=-1)
    like = record.map if record.map is not None else record.weights(slice(0, 0))
    return convert_like((total / np.maximum(count, 1)[..., None]).astype(np.float32), like)


MEASURES: dict[str, Callable[[Record, Visibility], np.ndarray]] = {
    "entropy": mean_entropy,
    "sink": sink_share,
    "distance": mean_distance,
}


def measure_heads(trace: Trace, name: str) -> np.ndarray:
    """`entropy`, `sink` or `distance` of each head, L H: computed for each sample, then averaged over samples.

    NaN where a layer has fewer heads.
    """
    if name not in MEASURES:
        raise UnknownNameError("measure-unknown", asked=name, measures=Listed(MEASURES))
    if not len(trace):
        raise ArgumentError("trace-empty")
    found = np.full((len(trace), max(record.shape[1] for record in trace)), np.nan)
    for layer, visibility in enumerate(visibilities(trace)):
        if visibility.record.shape[0]:
            found[layer, : visibility.record.shape[1]] = MEASURES[name](visibility.record, visibility).mean(0)
    return found
