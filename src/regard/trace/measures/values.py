"""Value-weighted attention: a weight counts as much as the vector that it moves is long."""

from dataclasses import replace

import numpy as np

from regard.axes import bin_count, bin_width
from regard.errors import ArgumentError, NotKeptError
from regard.kinds import Array, to_kind_of, to_numpy
from regard.records import Record, See
from regard.trace.measures.blocks import blocks


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
