"""Where a token stands: five ways to tell attention, which by itself sees a bag of tokens.

Added to the input: sinusoidal and learned tables. Turned into q and k: rotary. Added to the scores, as
`bias`: ALiBi's slopes and T5's relative buckets. These two are aligned as masks are: query i stands at key
position i + S − T. Angles are computed in float64, whatever the dtype: float16 cannot even count to 2049.
"""

import numpy as np

from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.reference.exponentials import computing_dtype
from regard.spacing import (
    Pairing,
    bucket_edges,
    buckets_per_side,
    check_base,
    check_counts,
    check_pairing,
    check_positions,
    slopes,
)


def sinusoidal_positions(
    length: int, d_model: int, base: float = 10000.0, start: int = 0, like: np.ndarray | None = None
) -> np.ndarray:
    """The table of the 2017 paper (section 3.5) for positions start … start + length − 1, (length, d_model).

        PE(p, 2i) = sin(p / base^(2i / d_model)),  PE(p, 2i+1) = cos(p / base^(2i / d_model))

    i counts pairs of columns. An odd d_model ends with a sine that has no cosine. `like` gives the dtype.

    >>> sinusoidal_positions(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    check_counts(length=(length, 0), d_model=(d_model, 1), start=(start, 0))
    check_base(base)
    angles = np.outer(np.arange(start, start + length), base ** -(np.arange(0, d_model, 2) / d_model))
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : d_model // 2]
    return _like(table, like)


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


def rotary_angles(positions: np.ndarray, d_head: int, base: float = 10000.0) -> np.ndarray:
    """By how much each pair is turned, (…, T, d_head / 2): position · base^(−2i / d_head), i counting pairs.

    >>> rotary_angles(np.array([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    check_counts(d_head=(d_head, 0))
    check_base(base)
    if d_head % 2:
        raise ShapeError("rotary-odd-width", E=d_head, below=d_head - 1, above=d_head + 1)
    frequencies = base ** -(np.arange(0, d_head, 2) / max(d_head, 1))  # E/2
    return _checked_positions(positions)[..., None] * frequencies


def rotate(x: np.ndarray, positions: np.ndarray, base: float = 10000.0, pairing: Pairing = "halves") -> np.ndarray:
    """Rotary positions: each pair (a, b) of x (…, T, E) becomes (a cos − b sin, b cos + a sin).

    So x keeps its length, and rotated q · k depends on their distance alone (Su et al. 2021, section 3.4).
    Which numbers are a pair is up to the checkpoint: "pairs" are neighbours, as in the paper and GPT-J;
    "halves" are i and i + E/2, as in GPT-NeoX and Llama. `positions` is (T,), or (…, T) with as many axes as
    x has before E, each of size 1 or the same. Rotating by −positions undoes it, and is also its backward.

    >>> rotate(np.array([[1.0, 0.0]]), np.array([1])).round(4).tolist()
    [[0.5403, 0.8415]]
    """
    if x.ndim < 2:
        raise ShapeError("rotary-axes", found=x.shape)
    first, second = _pairs(x.shape[-1], pairing)
    angles = rotary_angles(_fitting(positions, x), x.shape[-1], base)  # … T E/2
    exact = computing_dtype(x)
    a, b = x[..., first].astype(exact), x[..., second].astype(exact)
    turned = np.empty(x.shape, exact)
    with np.errstate(over="ignore", invalid="ignore"):
        cos, sin = np.cos(angles).astype(exact), np.sin(angles).astype(exact)
        turned[..., first] = a * cos - b * sin
        turned[..., second] = b * cos + a * sin
        return turned.astype(x.dtype if x.dtype.kind == "f" else exact)


def alibi_slopes(n_heads: int, like: np.ndarray | None = None) -> np.ndarray:
    """One slope per head, (H,), by the paper and, where H is no power of two, its code (Press et al. 2021).

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    return _like(np.array(slopes(n_heads)), like)


def alibi_bias(n_heads: int, T: int, S: int, like: np.ndarray | None = None) -> np.ndarray:
    """−slope · distance, (H, T, S), to be added to the scores. Keys after the query count their distance too.

    The paper is causal and never sees those; a mask hides them here as well.

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return _like(alibi_slopes(n_heads)[:, None, None] * -np.abs(_relative(T, S)), like)


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
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    step = _relative(T, S)
    distance = np.abs(step) if bidirectional else np.maximum(-step, 0)
    buckets: np.ndarray = np.searchsorted(bucket_edges(per_side, max_distance), distance, side="right")
    return np.where(step > 0, per_side + buckets, buckets) if bidirectional else buckets


def relative_bias(table: np.ndarray, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> np.ndarray:
    """T5's bias, (H, T, S), to be added to the scores: a learned table (n_buckets, H), read by bucket.

    >>> relative_bias(np.array([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=table.shape)
    buckets = relative_position_buckets(T, S, table.shape[0], max_distance, bidirectional)
    return np.moveaxis(table[buckets], -1, 0)


def _relative(T: int, S: int) -> np.ndarray:
    """The step from query i to key j, j − (i + S − T): negative for keys before the query."""
    check_counts(T=(T, 0), S=(S, 0))
    return np.arange(S) - (np.arange(T)[:, None] + S - T)


def _pairs(E: int, pairing: Pairing) -> tuple[slice, slice]:
    """The columns of the first and of the second number of each pair."""
    check_pairing(pairing)
    return (slice(0, E // 2), slice(E // 2, E)) if pairing == "halves" else (slice(0, E, 2), slice(1, E, 2))


def _fitting(positions: np.ndarray, x: np.ndarray) -> np.ndarray:
    """`positions` if they are (T,) or fit x axis by axis; (B, T) beside heads would broadcast over H."""
    positions = np.asarray(positions)
    check_positions(positions.shape, x.shape)
    return positions


def _checked_positions(positions: np.ndarray) -> np.ndarray:
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iuf" or positions.dtype == np.float16:
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.astype(np.float64)


def _like(x: np.ndarray, like: np.ndarray | None) -> np.ndarray:
    with np.errstate(over="ignore"):  # ALiBi's furthest keys in float16: -inf is what they are worth
        return x if like is None or like.dtype.kind != "f" else x.astype(like.dtype)
