"""Numbers of each head: entropy, sink, distance, value-weighted attention; and rollout, the product over layers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.arrays import Array, convert_like, to_numpy
from regard.axes import bin_count, bin_width, distance_count, plain_slice
from regard.errors import ArgumentError, NotKeptError, UnknownNameError
from regard.exact_weights import ExactWeights, WeightsArray
from regard.images import RecordImage
from regard.masks.padding import Padding, without_rows
from regard.memory import require_bytes
from regard.messages import Listed
from regard.records import CHECK_MEMORY_FROM, Record, See
from regard.reference.statistics import entropy
from regard.statistics_table import STATISTICS
from regard.trace.from_weights import record_from_weights
from regard.trace.measures.visibility import Visibility, block_rows, blocks, not_fully_masked, places, visibilities
from regard.trace.pooling import pool
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


def attention_rollout(trace: Trace, rows: slice | range | None = None) -> Record:
    """The share of each input token in each position of the last layer, if attention and residual count half each.

    Ã = ½ I + ½ mean over heads of A, and the rollout is Ã of the last layer times … times Ã of the first (Abnar and
    Zuidema 2020, section 3). Every record counts as a layer, in call order: choose one side, and one run, with
    `trace.select(kind=…)` or a slice. A fully masked query keeps its own input.

    `rows` are the positions to compute: only these rows are multiplied through all layers, without a T × T array.
    Values, feed-forward layers and norms are ignored, so rollout shows what could flow, not what did.

    Of a Trace of relevance (`Trace.relevance`), Ã = I + mean over heads of max(0, A ⊙ dA), and I is subtracted from the
    product (Chefer et al. 2021, "Generic attention-model explainability", section 3.1).

    >>> causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    >>> attention_rollout(Trace([record_from_weights(causal), record_from_weights(causal)])).weights()[0, 0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.44, 0.56, 0.  ],
           [0.32, 0.24, 0.44]], dtype=float32)
    """
    B, T = _sizes(trace)
    rows = plain_slice(rows, T)
    shape = (B, rows.stop - rows.start, T)
    if np.prod(shape) > CHECK_MEMORY_FROM:
        require_bytes(8 * int(np.prod(shape)), key="rollout-too-large", shape=shape)  # input and output of a product
    own = np.broadcast_to(np.eye(shape[1], T, rows.start, dtype=np.float32), shape)
    rolled, is_relevance = own, trace[0].rest == "relevance"
    for record in reversed(list(trace)):
        rolled = _multiplied(rolled, record, residual=1.0 if is_relevance else 0.5)
    first = trace[0]
    if is_relevance:
        return _relevance_record(first, rows, (rolled - own)[:, None])
    queries = first.query_tokens and [row[rows] for row in first.query_tokens]
    padding = _padding(trace, rows)
    rolled = without_rows(rolled[:, None], None if padding is None else padding.queries, 0, axes=1)
    return record_from_weights(rolled, queries, first.key_tokens, name="rollout", kind=first.kind).changed(
        padding=padding, images=_images(first, rows)
    )


def _images(first: Record, rows: slice) -> tuple[RecordImage, ...]:
    """The pictures of the layers; only as keys, where some queries are left out."""
    if rows == slice(0, first.shape[2]):
        return first.images
    return tuple(replace(one, side="keys") for one in first.images if one.is_on("keys"))


def _relevance_record(first: Record, rows: slice, rolled: np.ndarray) -> Record:
    """The rollout of relevance, whose rows have any sum. Padding has no relevance."""
    T, S = rolled.shape[2:]
    bins = See().map or max(T, S)
    ones = np.ones(rolled.shape[:3], int)
    found = Record(
        shape=(len(rolled), 1, T, S),
        name="rollout",
        kind=first.kind,
        rest="relevance",
        exact=WeightsArray(rolled),
        map=pool(rolled, ones, bin_width(T, bins), bin_width(S, bins))[0],
    )
    queries = first.query_tokens and [row[rows] for row in first.query_tokens]
    return found.with_tokens(queries, first.key_tokens).changed(images=_images(first, rows))


def _padding(trace: Trace, rows: slice) -> Padding | None:
    """The padding of these rows, from the first record where it is known."""
    found = next((record.padding for record in trace if record.padding is not None), None)
    if found is None:
        return None
    queries, keys = (None if x is None else to_numpy(x) for x in found)
    return Padding(None if queries is None else queries[:, rows], keys)


def _sizes(trace: Trace) -> tuple[int, int]:
    if not len(trace):
        raise ArgumentError("trace-empty")
    first = trace[0]
    wanted = (first.shape[0], *first.shape[2:])
    for record in trace:
        if record.kind != first.kind or record.kind == "cross":
            kinds = dict.fromkeys(each.kind for each in trace)
            raise ArgumentError("rollout-kinds", kinds=Listed(kinds))
        found = (record.shape[0], *record.shape[2:])
        if found != wanted or found[1] != found[2]:
            raise ArgumentError("rollout-shapes", first=first.name, wanted=wanted, name=record.name, found=found)
    again = _first_of_second_run(trace.names)
    if again is not None:
        raise ArgumentError("rollout-runs", name=again)
    return wanted[0], wanted[1]


def _first_of_second_run(names: Sequence[str]) -> str | None:
    """The first record of a second run, whose name is that of a layer with a number appended.

    None where all have one name: these may be layers that the caller combined.

    >>> _first_of_second_run(["h.0", "h.1", "h.0#1", "h.1#1"]), _first_of_second_run(["attention", "attention#1"])
    ('h.0#1', None)
    """
    layers = {name.partition("#")[0] for name in names}
    return next((name for name in names if "#" in name), None) if len(layers) > 1 else None


def _multiplied(rolled: np.ndarray, record: Record, residual: float) -> np.ndarray:
    """rolled (B r T) times Ã of one layer, its rows a block at a time; `residual` is the factor of I in Ã."""
    if residual == 1:
        return rolled + sum(rolled[..., rows] @ mean for rows, mean in _mean_rows(record))
    found = rolled / 2
    for rows, mean in _mean_rows(record):
        part = rolled[..., rows] / 2
        found += part @ mean
        found[..., rows] += part * (1 - mean.sum(-1))[:, None, :]  # from fully masked heads
    return found


def _mean_rows(record: Record) -> Iterator[tuple[slice, np.ndarray]]:
    """The mean over heads of the weights, B rows T, a block of rows at a time."""
    for rows in block_rows(record):
        weights = np.asarray(to_numpy(record.weights(rows=rows)))
        mean = weights.mean(1, dtype=np.float32)
        sums = mean.sum(-1)
        if not np.isfinite(sums).all():
            row = rows.start + int(np.argwhere(~np.isfinite(sums))[0][1])
            raise ArgumentError("measure-not-finite", name=record.name, row=row)
        yield rows, mean
