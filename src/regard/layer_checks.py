"""What layers in NumPy and in torch share: checks and constants of positions and recurrent layers, and Projections.

Only shapes and Python numbers, no arrays. The formulas are in `reference` and `functional`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from regard.arrays import Array, check_counts, is_number
from regard.axes import Shape, fits
from regard.errors import ArgumentError, ShapeError

Pairing = Literal["halves", "pairs"]


def check_base(base: float) -> None:
    """Raise ArgumentError unless the base of the wavelengths is positive and finite."""
    if not (is_number(base) and base > 0):
        raise ArgumentError("base-value", value=base)


def check_pairing(pairing: str) -> None:
    """Raise ArgumentError unless `pairing` is "halves" or "pairs"."""
    if pairing not in ("halves", "pairs"):
        raise ArgumentError("unknown-choice", name="pairing", value=pairing, choices="halves, pairs")


def check_positions(found: Shape, x: Shape) -> None:
    """Raise ShapeError unless positions are (T,) or fit x without its last axis; (B, T) would broadcast over heads."""
    if not _fits_positions_of(found, x):
        raise ShapeError("positions-shape", found=tuple(found), x=tuple(x), T=x[-2])


def check_rotations(found: Shape, x: Shape) -> None:
    """Raise ShapeError unless rotations fit x as positions do and have half its width."""
    if not _fits_positions_of(found[:-1], x) or 2 * found[-1] != x[-1]:
        raise ShapeError("rotations-shape", found=tuple(found), x=tuple(x), T=x[-2], E=x[-1])


def _fits_positions_of(found: Shape, x: Shape) -> bool:
    """Whether positions of this shape fit x (…, T, E)."""
    if len(x) < 2:
        raise ShapeError("rotary-axes", found=tuple(x))
    lead = tuple(x[:-1])
    return tuple(found[-1:]) == lead[-1:] and (len(found) == 1 or (len(found) == len(lead) and fits(found, lead)))


def check_rotary(d_head: int, base: float) -> None:
    """Raise unless the width of a head is even, as rotation of pairs requires, and the base is valid."""
    check_counts(d_head=(d_head, 0))
    check_base(base)
    if d_head % 2:
        raise ShapeError("rotary-odd-width", E=d_head, below=d_head - 1, above=d_head + 1)


def check_query_key_positions(queries: Shape, keys: Shape) -> None:
    """Raise ShapeError unless query positions are (T,) or (B, T) and key positions (S,) or (B, S), with one B."""
    batch_q, batch_k = queries[:-1], keys[:-1]
    if not (1 <= len(queries) <= 2 and 1 <= len(keys) <= 2 and (fits(batch_q, batch_k) or fits(batch_k, batch_q))):
        raise ShapeError("places-shape", queries=tuple(queries), keys=tuple(keys))


def yarn_ramp(d_head: int, base: float, original_len: int, fast: float, slow: float) -> tuple[float, float]:
    """The first and last pair of YaRN's ramp from unchanged to divided frequencies (Peng et al. 2023, section 3.2).

    Pair i makes original_len · base^(−2i / d_head) / 2π rotations in the original length; solved for i, and rounded
    outwards to integers, as in the paper's code.
    """
    if base <= 1:
        raise ArgumentError("yarn-base", value=base)
    first, last = (d_head * math.log(original_len / (2 * math.pi * n)) / (2 * math.log(base)) for n in (fast, slow))
    low, high = max(math.floor(first), 0), min(math.ceil(last), d_head - 1)
    return low, high if high != low else high + 0.001  # a ramp within one pair is a step, not 0 / 0


def yarn_sharpness(factor: float) -> float:
    """YaRN's default factor of cosines and sines: 0.1 ln(factor) + 1."""
    return 0.1 * math.log(max(factor, 1.0)) + 1.0


def factors_of(factors: Sequence[float], d_head: int) -> list[float]:
    """The factors of all pairs. Raises ShapeError unless there is one for each pair of a head."""
    if 2 * len(factors) != d_head:
        raise ShapeError("rotary-factors", found=len(factors), E=d_head, wanted=d_head // 2)
    return list(factors)


def unknown_scaling(found: object) -> ArgumentError:
    """The error for an object that is not a scaling of rotary positions."""
    choices = "LinearScaling, NtkScaling, YarnScaling, Llama3Scaling, FactorScaling, None"
    return ArgumentError("config-kind", name="scaling", found=type(found).__name__, choices=choices)


def buckets_per_side(n_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """The number of T5's buckets per direction."""
    check_counts(n_buckets=(n_buckets, 4 if bidirectional else 2), max_distance=(max_distance, 1))
    if bidirectional and n_buckets % 2:
        raise ArgumentError("buckets-odd", n_buckets=n_buckets, below=n_buckets - 1, above=n_buckets + 1)
    per_side = n_buckets // 2 if bidirectional else n_buckets
    if max_distance <= per_side // 2:
        raise ArgumentError("buckets-distance", max_distance=max_distance, exact=per_side // 2)
    return per_side


def bucket_edges(n: int, max_distance: int) -> list[int]:
    """The distances at which T5's buckets 1 … n − 1 begin.

    T5 writes exact + floor(ln(d / exact) / ln(max_distance / exact) · rest). That is at least exact + k where
    d^rest ≥ max_distance^k · exact^(rest − k), compared here in integers: logarithms in float64 round some
    edges into the wrong bucket.
    """
    exact, rest = n // 2, n - n // 2
    edges = list(range(1, exact + 1))
    for k in range(1, rest):
        d = edges[-1]
        while d**rest < max_distance**k * exact ** (rest - k):
            d += 1
        edges.append(d)
    return edges


# --- recurrent layers --------------------------------------------------------------------------------------

GATES = ("i", "f", "g", "o")
"""The gates of an LSTM in the order of its columns, as in PyTorch: input, forget, candidate, output."""


def check_recurrent(x: Any, states: Mapping[str, Any], weights: Mapping[str, Any], n_gates: int, steps: int) -> None:
    """ShapeError unless x (…, D) or (…, T, D), states (…, F) and weights fit together.

    states    h, and c of an LSTM; None for zeros
    weights   W_x (D, G·F), W_h (F, G·F) and the biases (G·F,), None for no bias; G is `n_gates`
    steps     the number of time axes of x: 0 for a cell, 1 for a whole text
    """
    if x.ndim < 1 + steps:
        raise ShapeError("width-wanted", found=tuple(x.shape))
    W_h: Shape = tuple(weights["W_h"].shape)
    F = W_h[0] if W_h else 0
    wanted: dict[str, Shape] = {"W_h": (F, n_gates * F), "W_x": (x.shape[-1], n_gates * F)}
    wanted |= dict.fromkeys(("b_x", "b_h"), (n_gates * F,))
    wanted |= dict.fromkeys(states, (*x.shape[: x.ndim - 1 - steps], F))
    for name, part in {**weights, **states}.items():
        if part is not None and tuple(part.shape) != wanted[name]:
            raise ShapeError("output-shape", what=name, wanted=wanted[name], found=tuple(part.shape))


def check_additive(q: Any, k: Any, W_q: Any, W_k: Any, w: Any) -> None:
    """ShapeError unless W_q (E, A), W_k (Ek, A) and w (A,) fit queries (…, T, E) and keys (…, S, Ek)."""
    A = w.shape[:1]
    wanted = {"W_q": (q.shape[-1], *A), "W_k": (k.shape[-1], *A), "w": A}
    for name, part in (("W_q", W_q), ("W_k", W_k), ("w", w)):
        if tuple(part.shape) != tuple(wanted[name]):
            raise ShapeError("output-shape", what=name, wanted=tuple(wanted[name]), found=tuple(part.shape))


def check_general(q: Any, k: Any, W: Any) -> None:
    """ShapeError unless W (E, Ek) fits queries (…, T, E) and keys (…, S, Ek)."""
    wanted = (q.shape[-1], k.shape[-1])
    if tuple(W.shape) != wanted:
        raise ShapeError("output-shape", what="W", wanted=wanted, found=tuple(W.shape))


# --- multi-head attention ----------------------------------------------------------------------------------


class Projections(NamedTuple):
    """Used as `x @ W + b`. Columns h·E … (h+1)·E of W_q, W_k and W_v belong to head h, and so do these rows of W_o.

    W_q is D × H·E, W_k is D × G·E, W_v is D × G·Ev, W_o is H·Ev × D; biases may be None.
    """

    W_q: Array
    W_k: Array
    W_v: Array
    W_o: Array
    b_q: Array | None = None
    b_k: Array | None = None
    b_v: Array | None = None
    b_o: Array | None = None
