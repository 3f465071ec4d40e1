"""Five kinds of position encoding in PyTorch: the counterparts of `reference.positions`.

Angles are computed in float64 and rounded once, also for half precision: bfloat16 cannot represent 257. New tensors
have the dtype and device of `like`; without it torch's defaults apply. Nothing is copied from Python to the device,
so that all functions can be captured in a CUDA graph.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from regard.arrays import check_counts
from regard.config.styles import FactorScaling, LinearScaling, Llama3Scaling, NtkScaling, Scaling, YarnScaling
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.functional.attention import computing_dtype
from regard.functional.position_wise import floats
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


class Rotations(NamedTuple):
    """The cosines and sines of rotary positions, each (…, T, E/2): computed once, used by every layer."""

    cos: Tensor
    sin: Tensor


def sinusoidal_positions(
    length: int,
    d_model: int,
    base: float = 10000.0,
    start: int = 0,
    like: Tensor | None = None,
    pairing: Pairing = "pairs",
) -> Tensor:
    """The sinusoidal table of the 2017 paper for positions start … start + length − 1, (length, d_model).

    >>> sinusoidal_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    check_counts(length=(length, 0), start=(start, 0))
    return sinusoidal_at(torch.arange(start, start + length, device=_device(like)), d_model, base, pairing, like)


def sinusoidal_at(
    positions: Tensor, d_model: int, base: float = 10000.0, pairing: Pairing = "pairs", like: Tensor | None = None
) -> Tensor:
    """The rows of the sinusoidal table for `positions` (…, T): (…, T, d_model).

    "pairs" interleaves sines and cosines, as the paper; "halves" puts all sines first, as Marian. With an odd
    d_model the last sine has no cosine.

    >>> sinusoidal_at(torch.tensor([0]), 4, pairing="halves").tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    check_counts(d_model=(d_model, 1))
    check_base(base)
    check_pairing(pairing)
    exact = _exact_positions(_on(positions, like))
    angles = exact[..., None] * _frequencies(d_model, base, exact.device)
    sin, cos = angles.sin(), angles.cos()  # … T ⌈D/2⌉
    if pairing == "halves":
        return _like(torch.cat((sin, cos[..., : d_model // 2]), dim=-1), like)
    return _like(torch.stack((sin, cos), dim=-1).flatten(-2)[..., :d_model], like)


def learned_positions(table: Tensor, length: int, start: int = 0) -> Tensor:
    """Rows start … start + length − 1 of a learned table (max_len, D); ArgumentError if it is too short.

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


def learned_at(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of a learned table (max_len, D) for `positions` (…, T): (…, T, D).

    Raises ArgumentError for a position outside the table, but only where reading values is free: on the CPU,
    outside of a traced graph.

    >>> learned_at(torch.arange(6).view(3, 2), torch.tensor([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_at", axes="(max_len, D)", found=tuple(table.shape))
    positions = _integers("positions", positions)
    if positions.device.type == "cpu" and not torch.compiler.is_compiling():
        outside = positions[(positions < 0) | (positions >= table.shape[0])]
        if outside.numel():
            raise ArgumentError("position-outside-table", value=int(outside[0]), max_len=table.shape[0])
    return torch.embedding(table, positions.to(table.device))


def rotary_frequencies(
    d_head: int, base: float = 10000.0, scaling: Scaling | None = None, like: Tensor | None = None
) -> Tensor:
    """The rotation angle of each pair per position, (d_head / 2,), after `scaling`.

    >>> rotary_frequencies(4, scaling=LinearScaling(factor=2.0)).tolist()
    [0.5, 0.004999999888241291]
    """
    return _like(_rotary_frequencies(d_head, base, scaling, _device(like)), like)


def rotary_angles(positions: Tensor, d_head: int, base: float = 10000.0, scaling: Scaling | None = None) -> Tensor:
    """The rotation angle of each pair i at each position, (…, T, d_head / 2): position · base^(−2i / d_head).

    >>> rotary_angles(torch.tensor([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    frequencies = _rotary_frequencies(d_head, base, scaling, positions.device)
    return _exact_positions(positions)[..., None] * frequencies


def rotations_at(
    positions: Tensor, d_head: int, base: float = 10000.0, scaling: Scaling | None = None, like: Tensor | None = None
) -> Rotations:
    """The cosines and sines of `rotary_angles`, times YaRN's sharpness, in the computing dtype of `like`.

    >>> rotations_at(torch.tensor([0]), d_head=4)
    Rotations(cos=tensor([[1., 1.]]), sin=tensor([[0., 0.]]))
    """
    angles = rotary_angles(_on(positions, like), d_head, base, scaling)
    cos, sin = angles.cos(), angles.sin()
    if isinstance(scaling, YarnScaling):
        sharpness = yarn_sharpness(scaling.factor) if scaling.sharpness is None else scaling.sharpness
        cos, sin = cos * sharpness, sin * sharpness
    if isinstance(scaling, FactorScaling):
        cos, sin = cos * scaling.sharpness, sin * scaling.sharpness
    dtype = torch.get_default_dtype() if like is None else computing_dtype(floats(like))
    return Rotations(cos.to(dtype), sin.to(dtype))


def apply_rotations(x: Tensor, rotations: Rotations, pairing: Pairing = "halves") -> Tensor:
    """Rotate each pair (a, b) of x (…, T, E) to (a cos − b sin, b cos + a sin).

    `rotations` are (T, E/2), or (…, T, E/2) with as many axes as x, where each axis before T has size 1 or that of x.

    >>> apply_rotations(torch.tensor([[1.0, 0.0]]), Rotations(torch.tensor([[0.0]]), torch.tensor([[1.0]]))).tolist()
    [[0.0, 1.0]]
    """
    cos, sin = rotations
    check_pairing(pairing)
    check_rotations(cos.shape, x.shape)
    return apply_expanded_rotations(floats(x), expand_rotations(Rotations(cos, sin), pairing), pairing)


def expand_rotations(rotations: Rotations, pairing: Pairing) -> Rotations:
    """Cosines and signed sines for both numbers of each pair, (…, T, E): computed once, used by every layer."""
    check_pairing(pairing)
    cos, sin = rotations
    if pairing == "halves":
        return Rotations(torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1))
    return Rotations(torch.stack((cos, cos), dim=-1).flatten(-2), torch.stack((-sin, sin), dim=-1).flatten(-2))


def apply_expanded_rotations(x: Tensor, rotations: Rotations, pairing: Pairing) -> Tensor:
    """x ∘ cos + x with each pair swapped ∘ sin, for rotations from `expand_rotations`."""
    cos, sin = rotations
    if cos.shape[-2:] != x.shape[-2:]:
        check_rotations((*cos.shape[:-1], cos.shape[-1] // 2), x.shape)
    swapped = x.roll(x.shape[-1] // 2, -1) if pairing == "halves" else x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    # Half precision times float32 is float32, so no conversion is needed first.
    return torch.addcmul(x * cos, swapped, sin).to(x.dtype)


def rotate(
    x: Tensor, positions: Tensor, base: float = 10000.0, pairing: Pairing = "halves", scaling: Scaling | None = None
) -> Tensor:
    """Rotary positions: x (…, T, E) rotated by its positions.

    "pairs" are neighbours (Su et al. 2021, GPT-J); "halves" are i and i + E/2 (GPT-NeoX, Llama). `positions`
    is (T,), or (…, T) with as many axes as x has before E, each of size 1 or that of x.

    >>> [round(y, 4) for y in rotate(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))[0].tolist()]
    [0.5403, 0.8415]
    """
    positions = _on(positions, x)
    check_positions(positions.shape, x.shape)
    return apply_rotations(x, rotations_at(positions, x.shape[-1], base, scaling, like=x), pairing)


def alibi_slopes(n_heads: int, like: Tensor | None = None) -> Tensor:
    """One slope per head, (H,), from the paper; if H is not a power of two, from its code (Press et al. 2021).

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    return _like(_slopes(n_heads, _device(like)), like)


def alibi_bias(n_heads: int, T: int, S: int, like: Tensor | None = None) -> Tensor:
    """−slope · distance, (H, T, S), a bias of the scores. The distance of keys after the query counts too.

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return alibi_bias_at(n_heads, *_default_positions(T, S, like), like)


def alibi_bias_at(n_heads: int, queries: Tensor, keys: Tensor, like: Tensor | None = None) -> Tensor:
    """The ALiBi bias for queries and keys at given positions, (T,) or (B, T) and (S,) or (B, S).

    The result is (H, T, S), or (B, H, T, S) if either has a batch axis.

    >>> alibi_bias_at(1, torch.tensor([7]), torch.tensor([5, 7])).tolist() == [[[-2 / 256, 0.0]]]
    True
    """
    offset = _offsets(_on(queries, like), _on(keys, like))
    return _like(_slopes(n_heads, offset.device)[:, None, None] * -offset.abs()[..., None, :, :], like)


def relative_position_buckets(
    T: int, S: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """The bucket of each distance from query to key, integers (T, S), as in T5 (Raffel et al. 2020).

    >>> relative_position_buckets(1, 12, n_buckets=8, max_distance=10, bidirectional=False).tolist()
    [[7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0]]
    """
    return _buckets(_offsets(*_default_positions(T, S, None)), n_buckets, max_distance, bidirectional)


def relative_bias(table: Tensor, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> Tensor:
    """T5's bias of the scores, (H, T, S): a learned table (n_buckets, H), indexed by bucket.

    >>> relative_bias(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    return relative_bias_at(table, *_default_positions(T, S, table), max_distance, bidirectional)


def relative_bias_at(
    table: Tensor, queries: Tensor, keys: Tensor, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """T5's bias for queries and keys at given positions; shapes as in `alibi_bias_at`.

    >>> relative_bias_at(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([7]), torch.tensor([6, 7])).tolist()
    [[[1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=tuple(table.shape))
    offsets = _offsets(_on(queries, table), _on(keys, table))
    buckets = _buckets(offsets, table.shape[0], max_distance, bidirectional)
    return table.T[:, buckets].movedim(0, -3)  # rows of table.T: keys are contiguous in memory


def _rotary_frequencies(d_head: int, base: float, scaling: Scaling | None, device: torch.device) -> Tensor:
    """base^(−2i / d_head) after scaling, in the dtype for angles."""
    check_rotary(d_head, base)
    frequencies = _frequencies(d_head, base, device)  # E/2
    if scaling is None:
        return frequencies
    if isinstance(scaling, FactorScaling):
        factors = torch.tensor(factors_of(scaling.factors, d_head), dtype=frequencies.dtype, device=device)
        return frequencies / factors
    if isinstance(scaling, NtkScaling):
        # base · factor^(E / (E − 2)) written out: the first frequency is unchanged, the last is divided by `factor`.
        return frequencies * scaling.factor ** -(_arange(d_head // 2, device) / max(d_head // 2 - 1, 1))
    kept = _unchanged_share(scaling, d_head, base, frequencies)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def _unchanged_share(scaling: Scaling, d_head: int, base: float, frequencies: Tensor) -> Tensor:
    """The share of each frequency that is left unchanged: 1 for fast ones, 0 for slow ones, a ramp between."""
    if isinstance(scaling, LinearScaling):
        return torch.zeros_like(frequencies)
    if isinstance(scaling, YarnScaling):
        first, last = yarn_ramp(d_head, base, scaling.original_len, scaling.fast, scaling.slow)
        return 1 - ((_arange(len(frequencies), frequencies.device) - first) / (last - first)).clamp(0, 1)
    if isinstance(scaling, Llama3Scaling):
        rounds = scaling.original_len * frequencies / (2 * math.pi)
        return ((rounds - scaling.slow) / (scaling.fast - scaling.slow)).clamp(0, 1)
    raise unknown_scaling(scaling)


def _frequencies(width: int, base: float, device: torch.device) -> Tensor:
    """base^(−2i / width) for each pair of columns."""
    return base ** -(2 * _arange((width + 1) // 2, device) / max(width, 1))


def _arange(n: int, device: torch.device) -> Tensor:
    """0, 1, … n − 1 in the dtype for angles."""
    return torch.arange(n, device=device).to(_exact(device))


def _slopes(n_heads: int, device: torch.device) -> Tensor:
    """2^(−8/P), 2^(−16/P), … for the largest power of two P up to H; the remaining heads get slopes halfway between."""
    check_counts(n_heads=(n_heads, 1))
    power = 2 ** (int(n_heads).bit_length() - 1)
    steps = torch.cat((_arange(power, device) + 1, _arange(n_heads - power, device) + 0.5))
    return 2.0 ** (steps * -8 / power)


def _default_positions(T: int, S: int, like: Tensor | None) -> tuple[Tensor, Tensor]:
    """The default positions of queries and keys: query i at i + S − T, so the last query is at the last key."""
    check_counts(T=(T, 0), S=(S, 0))
    device = _device(like)
    return torch.arange(T, device=device) + (S - T), torch.arange(S, device=device)


def _offsets(queries: Tensor, keys: Tensor) -> Tensor:
    """Key position minus query position, (T, S) or (B, T, S): negative for keys before the query."""
    check_query_key_positions(queries.shape, keys.shape)
    return _integers("keys", keys)[..., None, :] - _integers("queries", queries)[..., :, None]


def _buckets(offset: Tensor, n_buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    edges = [torch.full((), edge, device=offset.device) for edge in bucket_edges(per_side, max_distance)]
    buckets = torch.bucketize(distance, torch.stack(edges), right=True)
    return buckets + per_side * (offset > 0) if bidirectional else buckets


def _exact_positions(positions: Tensor) -> Tensor:
    """`positions` in the dtype for angles."""
    if positions.dtype in (torch.bool, torch.float16, torch.bfloat16) or positions.is_complex():
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.to(_exact(positions.device))


def _integers(name: str, positions: Tensor) -> Tensor:
    """`positions` as int64; DtypeError unless they are integers."""
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise DtypeError("places-dtype", name=name, dtype=positions.dtype)
    return positions.long()


def _exact(device: torch.device) -> torch.dtype:
    """The dtype for angles: float64, except on Apple GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def _device(like: Tensor | None) -> torch.device:
    return torch.get_default_device() if like is None else like.device


def _on(x: Tensor, like: Tensor | None) -> Tensor:
    """`x` on the device of `like`; unchanged if `like` is None."""
    return x if like is None else torch.as_tensor(x, device=like.device)


def _like(x: Tensor, like: Tensor | None) -> Tensor:
    return x.to(like.dtype if like is not None and like.is_floating_point() else torch.get_default_dtype())
