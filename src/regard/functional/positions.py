"""Where a token stands, in PyTorch: the twins of `reference.positions`.

Angles are computed in float64 and rounded once, also for half precision: bfloat16 cannot count past 256.
`like` gives the dtype and device of what is made from nothing; without it torch's defaults hold.
"""

import torch
from torch import Tensor

from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.functional.activations import floats
from regard.functional.exponentials import computing_dtype
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
    length: int, d_model: int, base: float = 10000.0, start: int = 0, like: Tensor | None = None
) -> Tensor:
    """The table of the 2017 paper for positions start … start + length − 1, (length, d_model).

    Sines in the even columns, cosines in the odd ones; an odd d_model ends with a sine that has no cosine.

    >>> sinusoidal_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    check_counts(length=(length, 0), d_model=(d_model, 1), start=(start, 0))
    check_base(base)
    angles = _positions(start, start + length, like)[:, None] * _frequencies(d_model, base, like)
    both = torch.stack((angles.sin(), angles.cos()), dim=-1)  # length, ⌈D/2⌉, 2
    return _like(both.flatten(-2)[:, :d_model], like)


def learned_positions(table: Tensor, length: int, start: int = 0) -> Tensor:
    """Rows start … start + length − 1 of a learned table (max_len, D); ArgumentError where it ends earlier.

    >>> learned_positions(torch.arange(6).view(3, 2), length=2, start=1).tolist()
    [[2, 3], [4, 5]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_positions", axes="(max_len, D)", found=tuple(table.shape))
    check_counts(length=(length, 0), start=(start, 0))
    max_len = table.shape[0]
    if start + length > max_len:
        raise ArgumentError(
            "positions-beyond-table", start=start, length=length, max_len=max_len, needed=start + length
        )
    return table[start : start + length]


def rotary_angles(positions: Tensor, d_head: int, base: float = 10000.0) -> Tensor:
    """By how much each pair is turned, (…, T, d_head / 2): position · base^(−2i / d_head), i counting pairs.

    >>> rotary_angles(torch.tensor([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    check_counts(d_head=(d_head, 0))
    check_base(base)
    if d_head % 2:
        raise ShapeError("rotary-odd-width", E=d_head, below=d_head - 1, above=d_head + 1)
    if positions.dtype in (torch.bool, torch.float16, torch.bfloat16) or positions.is_complex():
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.to(_exact(positions.device))[..., None] * _frequencies(d_head, base, positions)


def rotate(x: Tensor, positions: Tensor, base: float = 10000.0, pairing: Pairing = "halves") -> Tensor:
    """Rotary positions: each pair (a, b) of x (…, T, E) becomes (a cos − b sin, b cos + a sin).

    "pairs" are neighbours (Su et al. 2021, GPT-J); "halves" are i and i + E/2 (GPT-NeoX, Llama). `positions`
    is (T,), or (…, T) with as many axes as x has before E, each of size 1 or the same.

    >>> [round(y, 4) for y in rotate(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))[0].tolist()]
    [0.5403, 0.8415]
    """
    if x.ndim < 2:
        raise ShapeError("rotary-axes", found=tuple(x.shape))
    check_pairing(pairing)
    angles = rotary_angles(_fitting(positions, x), x.shape[-1], base)  # … T E/2
    x = floats(x)
    exact = computing_dtype(x)
    cos, sin = angles.cos().to(exact), angles.sin().to(exact)
    # With E as 2 × E/2 or as E/2 × 2 each pair lies along an axis of its own, and the rest is alike.
    half = x.shape[-1] // 2
    split, axis = ((2, half), -2) if pairing == "halves" else ((half, 2), -1)
    a, b = x.to(exact).reshape(*x.shape[:-1], *split).unbind(axis)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=axis).flatten(-2).to(x.dtype)


def alibi_slopes(n_heads: int, like: Tensor | None = None) -> Tensor:
    """One slope per head, (H,), by the paper and, where H is no power of two, its code (Press et al. 2021).

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    return _like(_slopes(n_heads, like), like)


def alibi_bias(n_heads: int, T: int, S: int, like: Tensor | None = None) -> Tensor:
    """−slope · distance, (H, T, S), to be added to the scores. Keys after the query count their distance too.

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return _like(_slopes(n_heads, like)[:, None, None] * -_relative(T, S, like).abs(), like)


def relative_position_buckets(
    T: int, S: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """Which bucket each step from query to key falls in, whole numbers (T, S), as in T5 (Raffel et al. 2020).

    >>> relative_position_buckets(1, 12, n_buckets=8, max_distance=10, bidirectional=False).tolist()
    [[7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0]]
    """
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    return _buckets(_relative(T, S, None), per_side, max_distance, bidirectional)


def relative_bias(table: Tensor, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> Tensor:
    """T5's bias, (H, T, S), to be added to the scores: a learned table (n_buckets, H), read by bucket.

    >>> relative_bias(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=tuple(table.shape))
    per_side = buckets_per_side(table.shape[0], max_distance, bidirectional)
    buckets = _buckets(_relative(T, S, table), per_side, max_distance, bidirectional)
    return table[buckets].movedim(-1, 0)


def _slopes(n_heads: int, like: Tensor | None) -> Tensor:
    device = _device(like)
    return torch.tensor(slopes(n_heads), dtype=_exact(device), device=device)


def _relative(T: int, S: int, like: Tensor | None) -> Tensor:
    """The step from query i to key j, j − (i + S − T): negative for keys before the query."""
    check_counts(T=(T, 0), S=(S, 0))
    device = _device(like)
    return torch.arange(S, device=device) - (torch.arange(T, device=device)[:, None] + S - T)


def _buckets(step: Tensor, per_side: int, max_distance: int, bidirectional: bool) -> Tensor:
    distance = step.abs() if bidirectional else (-step).clamp(min=0)
    edges = torch.tensor(bucket_edges(per_side, max_distance), device=step.device)
    buckets = torch.bucketize(distance, edges, right=True)
    return buckets + per_side * (step > 0) if bidirectional else buckets


def _fitting(positions: Tensor, x: Tensor) -> Tensor:
    """`positions` if they are (T,) or fit x axis by axis; (B, T) beside heads would broadcast over H."""
    positions = torch.as_tensor(positions, device=x.device)
    check_positions(positions.shape, x.shape)
    return positions


def _positions(start: int, stop: int, like: Tensor | None) -> Tensor:
    device = _device(like)
    return torch.arange(start, stop, device=device).to(_exact(device))


def _frequencies(width: int, base: float, like: Tensor | None) -> Tensor:
    """base^(−2i / width) for each pair of columns."""
    device = _device(like)
    return base ** -(torch.arange(0, width, 2, device=device).to(_exact(device)) / max(width, 1))


def _exact(device: torch.device) -> torch.dtype:
    """The dtype for angles: float64, except on Apple's GPUs, which have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def _device(like: Tensor | None) -> torch.device:
    return torch.get_default_device() if like is None else like.device


def _like(x: Tensor, like: Tensor | None) -> Tensor:
    return x.to(like.dtype if like is not None and like.is_floating_point() else torch.get_default_dtype())
