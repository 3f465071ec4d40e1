"""Five kinds of position encoding in NumPy; attention by itself does not depend on the order of tokens.

Added to the input: sinusoidal and learned tables. Rotation of q and k: rotary. Added to the scores as `bias`:
ALiBi's slopes and T5's relative buckets. Without positions, query i is at key position i + S − T, as in masks;
functions whose names end in `_at` take positions, integers that may differ by sample. Angles are computed in
float64, whatever the dtype: float16 cannot represent 2049.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.arrays import check_counts
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.layer_checks import (
    Pairing,
    bucket_edges,
    buckets_per_side,
    check_base,
    check_pairing,
    check_positions,
    check_query_key_positions,
    check_rotary,
    check_rotations,
    factors_of,
    unknown_scaling,
    yarn_ramp,
    yarn_sharpness,
)
from regard.reference.attention import computing_dtype
from regard.reference.inputs import array_likes

if TYPE_CHECKING:  # the import is slow, and a caller that passes a scaling has done it already
    from regard.config.styles import Scaling


class Rotations(NamedTuple):
    """The cosines and sines of rotary positions, each (…, T, E/2): computed once, used by every layer."""

    cos: np.ndarray
    sin: np.ndarray


@array_likes
def sinusoidal_positions(
    length: int,
    d_model: int,
    base: float = 10000.0,
    start: int = 0,
    like: np.ndarray | None = None,
    pairing: Pairing = "pairs",
) -> np.ndarray:
    """The sinusoidal table of the 2017 paper (section 3.5) for positions start … start + length − 1, (length, d_model).

        PE(p, 2i) = sin(p / base^(2i / d_model)),  PE(p, 2i+1) = cos(p / base^(2i / d_model))

    i counts pairs of columns. The result has the dtype of `like`.

    >>> sinusoidal_positions(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    check_counts(length=(length, 0), start=(start, 0))
    return sinusoidal_at(np.arange(start, start + length), d_model, base, pairing, like)


@array_likes
def sinusoidal_at(
    positions: np.ndarray,
    d_model: int,
    base: float = 10000.0,
    pairing: Pairing = "pairs",
    like: np.ndarray | None = None,
) -> np.ndarray:
    """The rows of the sinusoidal table for `positions` (…, T): (…, T, d_model).

    "pairs" interleaves sines and cosines, as the paper; "halves" puts all sines first, as Marian. With an odd
    d_model the last sine has no cosine.

    >>> sinusoidal_at(np.array([0]), 4, pairing="halves").tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    check_counts(d_model=(d_model, 1))
    check_base(base)
    check_pairing(pairing)
    angles = _exact(positions)[..., None] * base ** -(np.arange(0, d_model, 2) / d_model)  # … T ⌈D/2⌉
    table = np.empty((*angles.shape[:-1], d_model))
    sines, cosines = _pairs(d_model, pairing)
    table[..., sines] = np.sin(angles)
    table[..., cosines] = np.cos(angles)[..., : d_model // 2]
    return _like(table, like)


@array_likes
def learned_positions(table: np.ndarray, length: int, start: int = 0) -> np.ndarray:
    """Rows start … start + length − 1 of a learned table (max_len, D), as in BERT and GPT-2.

    Raises ArgumentError if the table is too short; NumPy slicing would silently return fewer rows.

    >>> learned_positions(np.arange(6).reshape(3, 2), length=2, start=1).tolist()
    [[2, 3], [4, 5]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_positions", axes="(max_len, D)", found=table.shape)
    check_counts(length=(length, 0), start=(start, 0))
    if start + length > len(table):
        raise ArgumentError(
            "positions-beyond-table", start=start, length=length, max_len=len(table), needed=start + length
        )
    return table[start : start + length]


@array_likes
def learned_at(table: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The rows of a learned table (max_len, D) for `positions` (…, T): (…, T, D).

    Raises ArgumentError for a position outside the table; NumPy would read −1 as the last row.

    >>> learned_at(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_at", axes="(max_len, D)", found=table.shape)
    positions = _integers("positions", positions)
    outside = positions[(positions < 0) | (positions >= len(table))]
    if outside.size:
        raise ArgumentError("position-outside-table", value=int(outside[0]), max_len=len(table))
    return table[positions]


@array_likes
def rotary_frequencies(
    d_head: int, base: float = 10000.0, scaling: "Scaling | None" = None, like: np.ndarray | None = None
) -> np.ndarray:
    """The rotation angle of each pair per position, (d_head / 2,): base^(−2i / d_head).

    `scaling` lowers frequencies for texts longer than the model was trained for. Linear, YaRN and Llama 3 divide
    by `factor`; they differ in how much of each frequency is left unchanged.

    >>> from regard.config import LinearScaling
    >>> rotary_frequencies(4).tolist(), rotary_frequencies(4, scaling=LinearScaling(factor=2.0)).tolist()
    ([1.0, 0.01], [0.5, 0.005])
    """
    check_rotary(d_head, base)
    pair = np.arange(d_head // 2)
    frequencies = base ** -(2 * pair / max(d_head, 1))
    if scaling is None:
        return _like(frequencies, like)
    from regard.config.styles import FactorScaling, NtkScaling

    if isinstance(scaling, FactorScaling):
        return _like(frequencies / factors_of(scaling.factors, d_head), like)
    if isinstance(scaling, NtkScaling):
        # base · factor^(E / (E − 2)) written out: the first frequency is unchanged, the last is divided by `factor`.
        return _like(frequencies * scaling.factor ** -(pair / max(d_head // 2 - 1, 1)), like)
    kept = _unchanged_share(scaling, d_head, base, frequencies)
    return _like(frequencies * (kept + (1 - kept) / scaling.factor), like)


@array_likes
def rotary_angles(
    positions: np.ndarray, d_head: int, base: float = 10000.0, scaling: "Scaling | None" = None
) -> np.ndarray:
    """The rotation angle of each pair at each position, (…, T, d_head / 2): position · frequency.

    >>> rotary_angles(np.array([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    return _exact(positions)[..., None] * rotary_frequencies(d_head, base, scaling)


@array_likes
def rotations_at(
    positions: np.ndarray,
    d_head: int,
    base: float = 10000.0,
    scaling: "Scaling | None" = None,
    like: np.ndarray | None = None,
) -> Rotations:
    """The cosines and sines of `rotary_angles`, times YaRN's sharpness, in the computing dtype of `like`.

    >>> rotations_at(np.array([0]), d_head=4)
    Rotations(cos=array([[1., 1.]]), sin=array([[0., 0.]]))
    """
    angles = rotary_angles(positions, d_head, base, scaling)
    sharpness = _sharpness(scaling)
    dtype = np.float64 if like is None else computing_dtype(like)
    with np.errstate(invalid="ignore"):
        return Rotations((np.cos(angles) * sharpness).astype(dtype), (np.sin(angles) * sharpness).astype(dtype))


@array_likes
def apply_rotations(x: np.ndarray, rotations: Rotations, pairing: Pairing = "halves") -> np.ndarray:
    """Rotate each pair (a, b) of x (…, T, E) to (a cos − b sin, b cos + a sin).

    The checkpoint decides which numbers form a pair: "pairs" are neighbours, as in the paper and GPT-J;
    "halves" are i and i + E/2, as in GPT-NeoX and Llama. `rotations` are (T, E/2), or (…, T, E/2) with as many
    axes as x, where each axis before T has size 1 or that of x.

    >>> apply_rotations(np.array([[1.0, 0.0]]), Rotations(np.array([[0.0]]), np.array([[1.0]]))).tolist()
    [[0.0, 1.0]]
    """
    check_pairing(pairing)
    cos, sin = rotations
    check_rotations(cos.shape, x.shape)
    first, second = _pairs(x.shape[-1], pairing)
    exact = computing_dtype(x)
    a, b, cos, sin = (part.astype(exact, copy=False) for part in (x[..., first], x[..., second], cos, sin))
    rotated = np.empty(x.shape, exact)
    with np.errstate(over="ignore", invalid="ignore"):
        rotated[..., first] = a * cos - b * sin
        rotated[..., second] = b * cos + a * sin
        return rotated.astype(x.dtype if x.dtype.kind == "f" else exact)


@array_likes
def rotate(
    x: np.ndarray,
    positions: np.ndarray,
    base: float = 10000.0,
    pairing: Pairing = "halves",
    scaling: "Scaling | None" = None,
) -> np.ndarray:
    """Rotary positions: x (…, T, E) rotated by its positions.

    The norm of x is unchanged, and rotated q · k depends only on their distance (Su et al. 2021, section 3.4).
    `positions` is (T,), or (…, T) with as many axes as x has before E, each of size 1 or that of x. Rotation by
    −positions is the inverse, and also the backward pass.

    >>> rotate(np.array([[1.0, 0.0]]), np.array([1])).round(4).tolist()
    [[0.5403, 0.8415]]
    """
    check_positions(np.shape(positions), x.shape)
    return apply_rotations(x, rotations_at(positions, x.shape[-1], base, scaling, like=x), pairing)


@array_likes
def alibi_slopes(n_heads: int, like: np.ndarray | None = None) -> np.ndarray:
    """One slope per head, (H,): 2^(−8/H), 2^(−16/H), … where H is a power of two (Press et al. 2021).

    For other H, as in the paper's code: the slopes of the largest power of two below H; the remaining heads get
    slopes halfway between those, starting with the first.

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    check_counts(n_heads=(n_heads, 1))
    power = 2 ** (int(n_heads).bit_length() - 1)
    steps = np.concatenate((np.arange(power) + 1, np.arange(n_heads - power) + 0.5))
    return _like(2.0 ** (steps * -8 / power), like)


@array_likes
def alibi_bias(n_heads: int, T: int, S: int, like: np.ndarray | None = None) -> np.ndarray:
    """−slope · distance, (H, T, S), a bias of the scores. The distance of keys after the query counts too.

    In the paper these keys are always masked (causal).

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return alibi_bias_at(n_heads, *_default_positions(T, S), like)


@array_likes
def alibi_bias_at(n_heads: int, queries: np.ndarray, keys: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """The ALiBi bias for queries and keys at given positions, (T,) or (B, T) and (S,) or (B, S).

    The result is (H, T, S), or (B, H, T, S) if either has a batch axis.

    >>> alibi_bias_at(1, np.array([7]), np.array([5, 7])).tolist() == [[[-2 / 256, 0.0]]]
    True
    """
    distance = np.abs(_offsets(queries, keys))[..., None, :, :]  # (B) 1 T S
    return _like(alibi_slopes(n_heads)[:, None, None] * -distance, like)


def relative_position_buckets(
    T: int, S: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> np.ndarray:
    """The bucket of each distance from query to key, integers (T, S), as in T5 (Raffel et al. 2020).

    Half of the buckets hold one distance each; the rest grow by a constant factor up to `max_distance`, and
    the last holds all larger distances. `bidirectional` gives keys after the query the upper half of the
    buckets; without it they all share bucket 0 with the query itself.

    >>> relative_position_buckets(1, 12, n_buckets=8, max_distance=10, bidirectional=False).tolist()
    [[7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0]]
    """
    return _buckets(_offsets(*_default_positions(T, S)), n_buckets, max_distance, bidirectional)


@array_likes
def relative_bias(table: np.ndarray, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> np.ndarray:
    """T5's bias of the scores, (H, T, S): a learned table (n_buckets, H), indexed by bucket.

    >>> relative_bias(np.array([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    return relative_bias_at(table, *_default_positions(T, S), max_distance, bidirectional)


@array_likes
def relative_bias_at(
    table: np.ndarray, queries: np.ndarray, keys: np.ndarray, max_distance: int = 128, bidirectional: bool = True
) -> np.ndarray:
    """T5's bias for queries and keys at given positions; shapes as in `alibi_bias_at`.

    >>> relative_bias_at(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([7]), np.array([6, 7])).tolist()
    [[[1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=table.shape)
    buckets = _buckets(_offsets(queries, keys), table.shape[0], max_distance, bidirectional)  # (B) T S
    return np.moveaxis(table[buckets], -1, -3)


def _unchanged_share(scaling: "Scaling", d_head: int, base: float, frequencies: np.ndarray) -> np.ndarray:
    """The share of each frequency that is left unchanged: 1 for fast ones, 0 for slow ones, a ramp between."""
    from regard.config.styles import LinearScaling, Llama3Scaling, YarnScaling

    if isinstance(scaling, LinearScaling):
        return np.zeros_like(frequencies)
    if isinstance(scaling, YarnScaling):
        first, last = yarn_ramp(d_head, base, scaling.original_len, scaling.fast, scaling.slow)
        return 1 - ((np.arange(len(frequencies)) - first) / (last - first)).clip(0, 1)
    if isinstance(scaling, Llama3Scaling):
        rounds = scaling.original_len * frequencies / (2 * math.pi)
        return ((rounds - scaling.slow) / (scaling.fast - scaling.slow)).clip(0, 1)
    raise unknown_scaling(scaling)


def _sharpness(scaling: "Scaling | None") -> float:
    """The factor of cosines and sines, which makes softmax sharper."""
    if scaling is None:
        return 1.0
    from regard.config.styles import FactorScaling, YarnScaling

    if isinstance(scaling, FactorScaling):
        return scaling.sharpness
    if not isinstance(scaling, YarnScaling):
        return 1.0
    return yarn_sharpness(scaling.factor) if scaling.sharpness is None else scaling.sharpness


def _default_positions(T: int, S: int) -> tuple[np.ndarray, np.ndarray]:
    """The default positions of queries and keys: query i at i + S − T, so the last query is at the last key."""
    check_counts(T=(T, 0), S=(S, 0))
    return np.arange(T) + (S - T), np.arange(S)


def _offsets(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Key position minus query position, (T, S) or (B, T, S): negative for keys before the query."""
    check_query_key_positions(np.shape(queries), np.shape(keys))
    return _integers("keys", keys)[..., None, :] - _integers("queries", queries)[..., :, None]


def _buckets(offset: np.ndarray, n_buckets: int, max_distance: int, bidirectional: bool) -> np.ndarray:
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    distance = np.abs(offset) if bidirectional else np.maximum(-offset, 0)
    buckets: np.ndarray = np.searchsorted(bucket_edges(per_side, max_distance), distance, side="right")
    return np.where(offset > 0, per_side + buckets, buckets) if bidirectional else buckets


def _pairs(width: int, pairing: Pairing) -> tuple[slice, slice]:
    """The columns of the first and of the second number of each pair; with an odd width the last has no partner."""
    half = (width + 1) // 2
    return (slice(0, half), slice(half, width)) if pairing == "halves" else (slice(0, width, 2), slice(1, width, 2))


def _exact(positions: np.ndarray) -> np.ndarray:
    """`positions` as float64, the dtype for angles."""
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iuf" or positions.dtype == np.float16:
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.astype(np.float64)


def _integers(name: str, positions: np.ndarray) -> np.ndarray:
    """`positions` as int64; DtypeError unless they are integers."""
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iu":
        raise DtypeError("places-dtype", name=name, dtype=positions.dtype)
    return positions.astype(np.int64)


def _like(x: np.ndarray, like: np.ndarray | None) -> np.ndarray:
    with np.errstate(over="ignore"):  # float16: the bias of very distant keys becomes -inf
        return x if like is None or like.dtype.kind != "f" else x.astype(like.dtype)
