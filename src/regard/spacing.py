"""Positions as whole numbers: the rules and checks that the NumPy and the torch formulas share.

Only sizes and Python numbers live here; the formulas themselves stand in `reference.positions` and its twin.
"""

import math
from typing import Literal

from regard.axes import Shape, fits
from regard.errors import ArgumentError, ShapeError
from regard.kinds import is_whole

Pairing = Literal["halves", "pairs"]


def check_counts(**counts: tuple[int, int]) -> None:
    """Each is a whole number of at least so much, or an ArgumentError that names it."""
    for name, (value, least) in counts.items():
        if not is_whole(value) or value < least:
            raise ArgumentError("count-wanted", name=name, value=value, least=least)


def check_base(base: float) -> None:
    """The base of a geometric row of wavelengths must be positive and finite."""
    if not (math.isfinite(base) and base > 0):
        raise ArgumentError("base-value", value=base)


def check_pairing(pairing: str) -> None:
    """The two ways in which rotary positions pair columns."""
    if pairing not in ("halves", "pairs"):
        raise ArgumentError("unknown-choice", name="pairing", value=pairing, choices="halves, pairs")


def check_positions(found: Shape, x: Shape) -> None:
    """Positions are (T,), or fit x without its width axis by axis; (B, T) beside heads would broadcast over H."""
    lead = tuple(x[:-1])
    same_axes = len(found) == len(lead) and fits(found, lead)
    if tuple(found[-1:]) != lead[-1:] or not (len(found) == 1 or same_axes):
        raise ShapeError("positions-shape", found=tuple(found), x=tuple(x), T=x[-2])


def slopes(n_heads: int) -> list[float]:
    """ALiBi's slope of each head: 2^(−8/H), 2^(−16/H), … where H is a power of two (Press et al. 2021).

    For other H, the rule of the paper's code: the slopes of the largest power of two below H, then every other
    slope of twice that many heads, starting with the first, until there are H.
    """
    check_counts(n_heads=(n_heads, 1))
    power = 2 ** (int(n_heads).bit_length() - 1)
    main = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    between = [2 ** (-8 * i / (2 * power)) for i in range(1, 2 * power + 1, 2)]
    return main + between[: n_heads - power]


def buckets_per_side(n_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """How many of T5's buckets one direction gets."""
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
    d^rest ≥ max_distance^k · exact^(rest − k), compared here in whole numbers: logarithms in float64 round some
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
