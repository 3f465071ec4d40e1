"""Where a token stands: five ways to tell attention, which by itself sees a bag of tokens.

Added to the input: sinusoidal and learned tables. Turned into q and k: rotary. Added to the scores, as
`bias`: ALiBi's slopes and T5's relative buckets. These two are aligned as masks are: query i stands at key
position i + S − T; names ending in `_at` take places instead, whole numbers that may differ by sample. Angles
are computed in float64, whatever the dtype: float16 cannot even count to 2049.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.position_rules import (
    Pairing,
    bucket_edges,
    buckets_per_side,
    check_base,
    check_counts,
    check_pairing,
    check_places,
    check_positions,
    check_rotary,
    check_turns,
    no_such_scaling,
    yarn_ramp,
    yarn_sharpness,
)
from regard.reference.exponentials import computing_dtype
from regard.reference.inputs import array_likes

if TYPE_CHECKING:  # a config takes longer to import than everything here; whoever gives a scaling has it already
    from regard.config.positions import Scaling


class Turns(NamedTuple):
    """Cosines and sines by which pairs are turned, each (…, T, E/2): made once, used by every layer."""

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
    """The table of the 2017 paper (section 3.5) for positions start … start + length − 1, (length, d_model).

        PE(p, 2i) = sin(p / base^(2i / d_model)),  PE(p, 2i+1) = cos(p / base^(2i / d_model))

    i counts pairs of columns. `like` gives the dtype.

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
    """The rows of that table for `positions` (…, T), (…, T, d_model).

    "pairs" puts sine and cosine side by side, as the paper; "halves" all sines first, as Marian. Of an odd
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

    Raises ArgumentError where the table ends before that; NumPy alone would give fewer rows, silently.

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
    """The rows of a learned table (max_len, D) for `positions` (…, T), (…, T, D).

    Raises ArgumentError for a position outside the table; NumPy alone would read −1 as the last.

    >>> learned_at(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_at", axes="(max_len, D)", found=table.shape)
    positions = _whole("positions", positions)
    outside = positions[(positions < 0) | (positions >= len(table))]
    if outside.size:
        raise ArgumentError("position-outside-table", value=int(outside[0]), max_len=len(table))
    return table[positions]


@array_likes
def rotary_frequencies(
    d_head: int, base: float = 10000.0, scaling: "Scaling | None" = None, like: np.ndarray | None = None
) -> np.ndarray:
    """The angle that each pair is turned by from one position to the next, (d_head / 2,): base^(−2i / d_head).

    `scaling` lengthens waves for texts longer than the model was trained for. Linear, YaRN and Llama 3 divide by
    `factor`; they differ in how much of each wave is kept as it was.

    >>> from regard.config import LinearScaling
    >>> rotary_frequencies(4).tolist(), rotary_frequencies(4, scaling=LinearScaling(factor=2.0)).tolist()
    ([1.0, 0.01], [0.5, 0.005])
    """
    check_rotary(d_head, base)
    pair = np.arange(d_head // 2)
    frequencies = base ** -(2 * pair / max(d_head, 1))
    if scaling is None:
        return _like(frequencies, like)
    from regard.config.positions import NtkScaling

    if isinstance(scaling, NtkScaling):
        # base · factor^(E / (E − 2)) written out: the first wave stays, the last is divided by `factor`.
        return _like(frequencies * scaling.factor ** -(pair / max(d_head // 2 - 1, 1)), like)
    kept = _kept(scaling, d_head, base, frequencies)
    return _like(frequencies * (kept + (1 - kept) / scaling.factor), like)


@array_likes
def rotary_angles(
    positions: np.ndarray, d_head: int, base: float = 10000.0, scaling: "Scaling | None" = None
) -> np.ndarray:
    """By how much each pair is turned, (…, T, d_head / 2): position · frequency.

    >>> rotary_angles(np.array([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    return _exact(positions)[..., None] * rotary_frequencies(d_head, base, scaling)


@array_likes
def rotary_turns(
    positions: np.ndarray,
    d_head: int,
    base: float = 10000.0,
    scaling: "Scaling | None" = None,
    like: np.ndarray | None = None,
) -> Turns:
    """Cosines and sines of those angles, in the dtype that `like` is computed in; YaRN's sharpness multiplied in.

    >>> rotary_turns(np.array([0]), d_head=4)
    Turns(cos=array([[1., 1.]]), sin=array([[0., 0.]]))
    """
    angles = rotary_angles(positions, d_head, base, scaling)
    sharpness = _sharpness(scaling)
    dtype = np.float64 if like is None else computing_dtype(like)
    with np.errstate(invalid="ignore"):
        return Turns((np.cos(angles) * sharpness).astype(dtype), (np.sin(angles) * sharpness).astype(dtype))


@array_likes
def turn(x: np.ndarray, turns: Turns, pairing: Pairing = "halves") -> np.ndarray:
    """Each pair (a, b) of x (…, T, E) becomes (a cos − b sin, b cos + a sin).

    Which numbers are a pair is up to the checkpoint: "pairs" are neighbours, as in the paper and GPT-J;
    "halves" are i and i + E/2, as in GPT-NeoX and Llama. `turns` are (T, E/2), or (…, T, E/2) with as many axes
    as x, each before T of size 1 or the same.

    >>> turn(np.array([[1.0, 0.0]]), Turns(np.array([[0.0]]), np.array([[1.0]]))).tolist()
    [[0.0, 1.0]]
    """
    check_pairing(pairing)
    cos, sin = turns
    check_turns(cos.shape, x.shape)
    first, second = _pairs(x.shape[-1], pairing)
    exact = computing_dtype(x)
    a, b, cos, sin = (part.astype(exact, copy=False) for part in (x[..., first], x[..., second], cos, sin))
    turned = np.empty(x.shape, exact)
    with np.errstate(over="ignore", invalid="ignore"):
        turned[..., first] = a * cos - b * sin
        turned[..., second] = b * cos + a * sin
        return turned.astype(x.dtype if x.dtype.kind == "f" else exact)


@array_likes
def rotate(
    x: np.ndarray,
    positions: np.ndarray,
    base: float = 10000.0,
    pairing: Pairing = "halves",
    scaling: "Scaling | None" = None,
) -> np.ndarray:
    """Rotary positions: x (…, T, E) turned by its positions.

    So x keeps its length, and rotated q · k depends on their distance alone (Su et al. 2021, section 3.4).
    `positions` is (T,), or (…, T) with as many axes as x has before E, each of size 1 or the same. Rotating by
    −positions undoes it, and is also its backward.

    >>> rotate(np.array([[1.0, 0.0]]), np.array([1])).round(4).tolist()
    [[0.5403, 0.8415]]
    """
    check_positions(np.shape(positions), x.shape)
    return turn(x, rotary_turns(positions, x.shape[-1], base, scaling, like=x), pairing)


@array_likes
def alibi_slopes(n_heads: int, like: np.ndarray | None = None) -> np.ndarray:
    """One slope per head, (H,): 2^(−8/H), 2^(−16/H), … where H is a power of two (Press et al. 2021).

    For other H, the rule of the paper's code: the slopes of the largest power of two below H, and the heads that
    are left get slopes halfway between those, from the first on.

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    check_counts(n_heads=(n_heads, 1))
    power = 2 ** (int(n_heads).bit_length() - 1)
    steps = np.concatenate((np.arange(power) + 1, np.arange(n_heads - power) + 0.5))
    return _like(2.0 ** (steps * -8 / power), like)


@array_likes
def alibi_bias(n_heads: int, T: int, S: int, like: np.ndarray | None = None) -> np.ndarray:
    """−slope · distance, (H, T, S), to be added to the scores. Keys after the query count their distance too.

    The paper is causal and never sees those; a mask hides them here as well.

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return alibi_bias_at(n_heads, *_aligned(T, S), like)


@array_likes
def alibi_bias_at(n_heads: int, queries: np.ndarray, keys: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """The same for queries and keys that stand at given places, (T,) or (B, T) and (S,) or (B, S).

    The result is (H, T, S), or (B, H, T, S) where either has samples.

    >>> alibi_bias_at(1, np.array([7]), np.array([5, 7])).tolist() == [[[-2 / 256, 0.0]]]
    True
    """
    distance = np.abs(_steps(queries, keys))[..., None, :, :]  # (B) 1 T S
    return _like(alibi_slopes(n_heads)[:, None, None] * -distance, like)


def relative_position_buckets(
    T: int, S: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> np.ndarray:
    """Which bucket each step from query to key falls in, whole numbers (T, S), as in T5 (Raffel et al. 2020).

    Half of the buckets hold one distance each; the rest grow by a constant factor up to `max_distance`, and
    the last holds all that is further. `bidirectional` gives keys after the query the upper half of the
    buckets; without it they all share bucket 0 with the query itself.

    >>> relative_position_buckets(1, 12, n_buckets=8, max_distance=10, bidirectional=False).tolist()
    [[7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0]]
    """
    return _buckets(_steps(*_aligned(T, S)), n_buckets, max_distance, bidirectional)


@array_likes
def relative_bias(table: np.ndarray, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> np.ndarray:
    """T5's bias, (H, T, S), to be added to the scores: a learned table (n_buckets, H), read by bucket.

    >>> relative_bias(np.array([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    return relative_bias_at(table, *_aligned(T, S), max_distance, bidirectional)


@array_likes
def relative_bias_at(
    table: np.ndarray, queries: np.ndarray, keys: np.ndarray, max_distance: int = 128, bidirectional: bool = True
) -> np.ndarray:
    """The same for queries and keys that stand at given places; shapes as in `alibi_bias_at`.

    >>> relative_bias_at(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([7]), np.array([6, 7])).tolist()
    [[[1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=table.shape)
    buckets = _buckets(_steps(queries, keys), table.shape[0], max_distance, bidirectional)  # (B) T S
    return np.moveaxis(table[buckets], -1, -3)


def _kept(scaling: "Scaling", d_head: int, base: float, frequencies: np.ndarray) -> np.ndarray:
    """How much of each wave stays as it was: 1 of the fast ones, 0 of the slow ones, between them a ramp."""
    from regard.config.positions import LinearScaling, Llama3Scaling, YarnScaling

    if isinstance(scaling, LinearScaling):
        return np.zeros_like(frequencies)
    if isinstance(scaling, YarnScaling):
        first, last = yarn_ramp(d_head, base, scaling.original_len, scaling.fast, scaling.slow)
        return 1 - ((np.arange(len(frequencies)) - first) / (last - first)).clip(0, 1)
    if isinstance(scaling, Llama3Scaling):
        rounds = scaling.original_len * frequencies / (2 * math.pi)
        return ((rounds - scaling.slow) / (scaling.fast - scaling.slow)).clip(0, 1)
    raise no_such_scaling(scaling)


def _sharpness(scaling: "Scaling | None") -> float:
    """What cosines and sines are multiplied by, so that q · k is sharper."""
    if scaling is None:
        return 1.0
    from regard.config.positions import YarnScaling

    if not isinstance(scaling, YarnScaling):
        return 1.0
    return yarn_sharpness(scaling.factor) if scaling.sharpness is None else scaling.sharpness


def _aligned(T: int, S: int) -> tuple[np.ndarray, np.ndarray]:
    """Where queries and keys stand when nobody says: query i at i + S − T, the last beside the last key."""
    check_counts(T=(T, 0), S=(S, 0))
    return np.arange(T) + (S - T), np.arange(S)


def _steps(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The step from each query to each key, (T, S) or (B, T, S): negative for keys before the query."""
    check_places(np.shape(queries), np.shape(keys))
    return _whole("keys", keys)[..., None, :] - _whole("queries", queries)[..., :, None]


def _buckets(step: np.ndarray, n_buckets: int, max_distance: int, bidirectional: bool) -> np.ndarray:
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    distance = np.abs(step) if bidirectional else np.maximum(-step, 0)
    buckets: np.ndarray = np.searchsorted(bucket_edges(per_side, max_distance), distance, side="right")
    return np.where(step > 0, per_side + buckets, buckets) if bidirectional else buckets


def _pairs(width: int, pairing: Pairing) -> tuple[slice, slice]:
    """The columns of the first and of the second number of each pair; an odd width has one more of the first."""
    half = (width + 1) // 2
    return (slice(0, half), slice(half, width)) if pairing == "halves" else (slice(0, width, 2), slice(1, width, 2))


def _exact(positions: np.ndarray) -> np.ndarray:
    """`positions` in the dtype for angles."""
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iuf" or positions.dtype == np.float16:
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.astype(np.float64)


def _whole(name: str, places: np.ndarray) -> np.ndarray:
    """`places` as int64, if they are whole numbers."""
    places = np.asarray(places)
    if places.dtype.kind not in "iu":
        raise DtypeError("places-dtype", name=name, dtype=places.dtype)
    return places.astype(np.int64)


def _like(x: np.ndarray, like: np.ndarray | None) -> np.ndarray:
    with np.errstate(over="ignore"):  # ALiBi's furthest keys in float16: -inf is what they are worth
        return x if like is None or like.dtype.kind != "f" else x.astype(like.dtype)
