"""Where a token stands, in PyTorch: the twins of `reference.positions`.

Angles are computed in float64 and rounded once, also for half precision: bfloat16 cannot count past 256.
`like` gives the dtype and device of what is made from nothing; without it torch's defaults hold. Nothing here
copies numbers from Python to the device, so that all of it can be captured in a CUDA graph.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from regard.config.positions import LinearScaling, Llama3Scaling, NtkScaling, Scaling, YarnScaling
from regard.errors import ArgumentError, DtypeError, ShapeError
from regard.functional.exponentials import computing_dtype
from regard.functional.position_wise import floats
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


class Turns(NamedTuple):
    """Cosines and sines by which pairs are turned, each (…, T, E/2): made once, used by every layer."""

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
    """The table of the 2017 paper for positions start … start + length − 1, (length, d_model).

    >>> sinusoidal_positions(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    check_counts(length=(length, 0), start=(start, 0))
    return sinusoidal_at(torch.arange(start, start + length, device=_device(like)), d_model, base, pairing, like)


def sinusoidal_at(
    positions: Tensor, d_model: int, base: float = 10000.0, pairing: Pairing = "pairs", like: Tensor | None = None
) -> Tensor:
    """The rows of that table for `positions` (…, T), (…, T, d_model).

    "pairs" puts sine and cosine side by side, as the paper; "halves" all sines first, as Marian. An odd d_model
    ends with a sine that has no cosine.

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


def learned_at(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of a learned table (max_len, D) for `positions` (…, T), (…, T, D).

    Raises ArgumentError for a position outside the table, where looking at values costs nothing: positions on
    the CPU, not being compiled.

    >>> learned_at(torch.arange(6).view(3, 2), torch.tensor([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="learned_at", axes="(max_len, D)", found=tuple(table.shape))
    positions = _whole("positions", positions)
    if positions.device.type == "cpu" and not torch.compiler.is_compiling():
        outside = positions[(positions < 0) | (positions >= table.shape[0])]
        if outside.numel():
            raise ArgumentError("position-outside-table", value=int(outside[0]), max_len=table.shape[0])
    return torch.embedding(table, positions.to(table.device))


def rotary_frequencies(
    d_head: int, base: float = 10000.0, scaling: Scaling | None = None, like: Tensor | None = None
) -> Tensor:
    """The angle that each pair is turned by from one position to the next, (d_head / 2,), after `scaling`.

    >>> rotary_frequencies(4, scaling=LinearScaling(factor=2.0)).tolist()
    [0.5, 0.004999999888241291]
    """
    return _like(_rotary_frequencies(d_head, base, scaling, _device(like)), like)


def rotary_angles(positions: Tensor, d_head: int, base: float = 10000.0, scaling: Scaling | None = None) -> Tensor:
    """By how much each pair is turned, (…, T, d_head / 2): position · base^(−2i / d_head), i counting pairs.

    >>> rotary_angles(torch.tensor([0, 1, 2]), d_head=4).tolist()
    [[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]]
    """
    frequencies = _rotary_frequencies(d_head, base, scaling, positions.device)
    return _exact_positions(positions)[..., None] * frequencies


def rotary_turns(
    positions: Tensor, d_head: int, base: float = 10000.0, scaling: Scaling | None = None, like: Tensor | None = None
) -> Turns:
    """Cosines and sines of those angles, in the dtype that `like` is computed in; YaRN's sharpness multiplied in.

    >>> rotary_turns(torch.tensor([0]), d_head=4)
    Turns(cos=tensor([[1., 1.]]), sin=tensor([[0., 0.]]))
    """
    angles = rotary_angles(_on(positions, like), d_head, base, scaling)
    cos, sin = angles.cos(), angles.sin()
    if isinstance(scaling, YarnScaling):
        sharpness = yarn_sharpness(scaling.factor) if scaling.sharpness is None else scaling.sharpness
        cos, sin = cos * sharpness, sin * sharpness
    dtype = torch.get_default_dtype() if like is None else computing_dtype(floats(like))
    return Turns(cos.to(dtype), sin.to(dtype))


def turn(x: Tensor, turns: Turns, pairing: Pairing = "halves") -> Tensor:
    """Each pair (a, b) of x (…, T, E) becomes (a cos − b sin, b cos + a sin).

    `turns` are (T, E/2), or (…, T, E/2) with as many axes as x, each before T of size 1 or the same.

    >>> turn(torch.tensor([[1.0, 0.0]]), Turns(torch.tensor([[0.0]]), torch.tensor([[1.0]]))).tolist()
    [[0.0, 1.0]]
    """
    cos, sin = turns
    check_pairing(pairing)
    check_turns(cos.shape, x.shape)
    return turned(floats(x), spread(Turns(cos, sin), pairing), pairing)


def spread(turns: Turns, pairing: Pairing) -> Turns:
    """Turns for both numbers of each pair, (…, T, E), the sines with their sign: what all layers share, made once."""
    check_pairing(pairing)
    cos, sin = turns
    if pairing == "halves":
        return Turns(torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1))
    return Turns(torch.stack((cos, cos), dim=-1).flatten(-2), torch.stack((-sin, sin), dim=-1).flatten(-2))


def turned(x: Tensor, turns: Turns, pairing: Pairing) -> Tensor:
    """x ∘ cos + x with the two of each pair exchanged ∘ sin, for turns that are `spread`."""
    cos, sin = turns
    if cos.shape[-2:] != x.shape[-2:]:
        check_turns((*cos.shape[:-1], cos.shape[-1] // 2), x.shape)
    exchanged = x.roll(x.shape[-1] // 2, -1) if pairing == "halves" else x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    # Half precision times float32 is float32, so nothing has to be widened first.
    return torch.addcmul(x * cos, exchanged, sin).to(x.dtype)


def rotate(
    x: Tensor, positions: Tensor, base: float = 10000.0, pairing: Pairing = "halves", scaling: Scaling | None = None
) -> Tensor:
    """Rotary positions: x (…, T, E) turned by `rotary_turns` of its positions.

    "pairs" are neighbours (Su et al. 2021, GPT-J); "halves" are i and i + E/2 (GPT-NeoX, Llama). `positions`
    is (T,), or (…, T) with as many axes as x has before E, each of size 1 or the same.

    >>> [round(y, 4) for y in rotate(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))[0].tolist()]
    [0.5403, 0.8415]
    """
    positions = _on(positions, x)
    check_positions(positions.shape, x.shape)
    return turn(x, rotary_turns(positions, x.shape[-1], base, scaling, like=x), pairing)


def alibi_slopes(n_heads: int, like: Tensor | None = None) -> Tensor:
    """One slope per head, (H,), by the paper and, where H is no power of two, its code (Press et al. 2021).

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    return _like(_slopes(n_heads, _device(like)), like)


def alibi_bias(n_heads: int, T: int, S: int, like: Tensor | None = None) -> Tensor:
    """−slope · distance, (H, T, S), to be added to the scores. Keys after the query count their distance too.

    >>> alibi_bias(1, 2, 3).tolist() == [[[-1 / 256, 0.0, -1 / 256], [-2 / 256, -1 / 256, 0.0]]]
    True
    """
    return alibi_bias_at(n_heads, *_aligned(T, S, like), like)


def alibi_bias_at(n_heads: int, queries: Tensor, keys: Tensor, like: Tensor | None = None) -> Tensor:
    """The same for queries and keys that stand at given places, (T,) or (B, T) and (S,) or (B, S).

    The result is (H, T, S), or (B, H, T, S) where either has samples.

    >>> alibi_bias_at(1, torch.tensor([7]), torch.tensor([5, 7])).tolist() == [[[-2 / 256, 0.0]]]
    True
    """
    step = _steps(_on(queries, like), _on(keys, like))
    return _like(_slopes(n_heads, step.device)[:, None, None] * -step.abs()[..., None, :, :], like)


def relative_position_buckets(
    T: int, S: int, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """Which bucket each step from query to key falls in, whole numbers (T, S), as in T5 (Raffel et al. 2020).

    >>> relative_position_buckets(1, 12, n_buckets=8, max_distance=10, bidirectional=False).tolist()
    [[7, 7, 7, 7, 6, 5, 4, 4, 3, 2, 1, 0]]
    """
    return _buckets(_steps(*_aligned(T, S, None)), n_buckets, max_distance, bidirectional)


def relative_bias(table: Tensor, T: int, S: int, max_distance: int = 128, bidirectional: bool = True) -> Tensor:
    """T5's bias, (H, T, S), to be added to the scores: a learned table (n_buckets, H), read by bucket.

    >>> relative_bias(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), 2, 2).tolist()
    [[[0.0, 3.0], [1.0, 0.0]]]
    """
    return relative_bias_at(table, *_aligned(T, S, table), max_distance, bidirectional)


def relative_bias_at(
    table: Tensor, queries: Tensor, keys: Tensor, max_distance: int = 128, bidirectional: bool = True
) -> Tensor:
    """The same for queries and keys that stand at given places; shapes as in `alibi_bias_at`.

    >>> relative_bias_at(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([7]), torch.tensor([6, 7])).tolist()
    [[[1.0, 0.0]]]
    """
    if table.ndim != 2:
        raise ShapeError("table-axes", what="relative_bias", axes="(n_buckets, H)", found=tuple(table.shape))
    steps = _steps(_on(queries, table), _on(keys, table))
    buckets = _buckets(steps, table.shape[0], max_distance, bidirectional)
    return table.T[:, buckets].movedim(0, -3)  # by rows of table.T, so that keys lie side by side in memory


def _rotary_frequencies(d_head: int, base: float, scaling: Scaling | None, device: torch.device) -> Tensor:
    """base^(−2i / d_head) after scaling, in the dtype for angles."""
    check_rotary(d_head, base)
    frequencies = _frequencies(d_head, base, device)  # E/2
    if scaling is None:
        return frequencies
    if isinstance(scaling, NtkScaling):
        # base · factor^(E / (E − 2)) written out: the first wave stays, the last is divided by `factor`.
        return frequencies * scaling.factor ** -(_counted(d_head // 2, device) / max(d_head // 2 - 1, 1))
    kept = _kept(scaling, d_head, base, frequencies)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def _kept(scaling: Scaling, d_head: int, base: float, frequencies: Tensor) -> Tensor:
    """How much of each wave stays as it was: 1 of the fast ones, 0 of the slow ones, between them a ramp."""
    if isinstance(scaling, LinearScaling):
        return torch.zeros_like(frequencies)
    if isinstance(scaling, YarnScaling):
        first, last = yarn_ramp(d_head, base, scaling.original_len, scaling.fast, scaling.slow)
        return 1 - ((_counted(len(frequencies), frequencies.device) - first) / (last - first)).clamp(0, 1)
    if isinstance(scaling, Llama3Scaling):
        rounds = scaling.original_len * frequencies / (2 * math.pi)
        return ((rounds - scaling.slow) / (scaling.fast - scaling.slow)).clamp(0, 1)
    raise no_such_scaling(scaling)


def _frequencies(width: int, base: float, device: torch.device) -> Tensor:
    """base^(−2i / width) for each pair of columns."""
    return base ** -(2 * _counted((width + 1) // 2, device) / max(width, 1))


def _counted(n: int, device: torch.device) -> Tensor:
    """0, 1, … n − 1 in the dtype for angles."""
    return torch.arange(n, device=device).to(_exact(device))


def _slopes(n_heads: int, device: torch.device) -> Tensor:
    """2^(−8/P), 2^(−16/P), … for the largest power of two P up to H; heads that are left come halfway between."""
    check_counts(n_heads=(n_heads, 1))
    power = 2 ** (int(n_heads).bit_length() - 1)
    steps = torch.cat((_counted(power, device) + 1, _counted(n_heads - power, device) + 0.5))
    return 2.0 ** (steps * -8 / power)


def _aligned(T: int, S: int, like: Tensor | None) -> tuple[Tensor, Tensor]:
    """Where queries and keys stand when nobody says: query i at i + S − T, the last beside the last key."""
    check_counts(T=(T, 0), S=(S, 0))
    device = _device(like)
    return torch.arange(T, device=device) + (S - T), torch.arange(S, device=device)


def _steps(queries: Tensor, keys: Tensor) -> Tensor:
    """The step from each query to each key, (T, S) or (B, T, S): negative for keys before the query."""
    check_places(queries.shape, keys.shape)
    return _whole("keys", keys)[..., None, :] - _whole("queries", queries)[..., :, None]


def _buckets(step: Tensor, n_buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    per_side = buckets_per_side(n_buckets, max_distance, bidirectional)
    distance = step.abs() if bidirectional else (-step).clamp(min=0)
    edges = [torch.full((), edge, device=step.device) for edge in bucket_edges(per_side, max_distance)]
    buckets = torch.bucketize(distance, torch.stack(edges), right=True)
    return buckets + per_side * (step > 0) if bidirectional else buckets


def _exact_positions(positions: Tensor) -> Tensor:
    """`positions` in the dtype for angles."""
    if positions.dtype in (torch.bool, torch.float16, torch.bfloat16) or positions.is_complex():
        raise DtypeError("positions-dtype", dtype=positions.dtype)
    return positions.to(_exact(positions.device))


def _whole(name: str, places: Tensor) -> Tensor:
    """`places` as int64, if they are whole numbers."""
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise DtypeError("places-dtype", name=name, dtype=places.dtype)
    return places.long()


def _exact(device: torch.device) -> torch.dtype:
    """The dtype for angles: float64, except on Apple's GPUs, which have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def _device(like: Tensor | None) -> torch.device:
    return torch.get_default_device() if like is None else like.device


def _on(x: Tensor, like: Tensor | None) -> Tensor:
    """`x` on the device of `like`, or where it is."""
    return x if like is None else torch.as_tensor(x, device=like.device)


def _like(x: Tensor, like: Tensor | None) -> Tensor:
    return x.to(like.dtype if like is not None and like.is_floating_point() else torch.get_default_dtype())
