"""Which calls the Triton kernels support and why not; what a call requests; the scratch memory of a map.

Nothing here imports Triton.
"""

import os
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.kernels.tiles import Bins
from regard.kernels.triton.mask_bands import for_text, is_known
from regard.kernels.triton.tile_sizes import WIDEST, blocks_for, power_of_two
from regard.masks import BoundMask
from regard.padding import Padding
from regard.records import See

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
MOST = 32
"""So many strongest keys of each query at most: a program keeps them in registers."""
OLDEST = (8, 0)
"""The compute capability from which on Triton compiles all of these dtypes."""

Reason = tuple[str, dict[str, Any]]


def refusal(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    see: See | None = None,
    padding: Padding | None = None,
) -> Reason | None:
    """Why not, with what the sentence needs to know; None where nothing is against it.

    >>> x = torch.zeros(1, 1, 4, 32, dtype=torch.float64, device="meta")
    >>> refusal(x, x, x)[0]
    'triton-device'
    """
    if torch.compiler.is_compiling():
        return "triton-tracing", {"backend": "eager"}
    here = _of_this_machine(q)
    if here is not None:
        return here
    width = max(q.shape[-1], v.shape[-1])
    if dropout:
        return "no-dropout", {"backend": "eager"}
    if q.dtype not in DTYPES:
        return "triton-dtype", {"dtype": str(q.dtype).removeprefix("torch."), "backend": "chunked"}
    if width > WIDEST:
        return "triton-width", {"width": width, "most": WIDEST, "backend": "chunked"}
    if bias is not None:
        return "triton-bias", {"backend": "chunked"}
    if not is_known(mask):
        return "triton-mask", {"backend": "chunked"}
    if see is not None and see.differentiable and not is_known(_for_statistics(mask, padding, k.shape[2])):
        return "triton-padding", {"backend": "eager"}
    if see is not None and see.top is not None and see.top > MOST:
        return "triton-top", {"top": see.top, "most": MOST, "backend": "chunked"}
    return None


def _for_statistics(mask: BoundMask | None, padding: Padding | None, S: int) -> BoundMask | None:
    """The mask of a forward in which queries that are padding see nothing."""
    return mask if padding is None or padding.queries is None else for_text(mask, padding.queries, S)


def _of_this_machine(q: Tensor) -> Reason | None:
    """What there is to say of the device and of Triton.

    Interpreted, kernels run on the CPU: for our tests, not for whoever has TRITON_INTERPRET=1 set, since Triton's
    interpreter multiplies bfloat16 wrongly, and everything slowly.
    """
    interpreted = os.environ.get("TRITON_INTERPRET") == os.environ.get("REGARD_INTERPRET") == "1"
    if torch.version.hip or not (q.is_cuda or (q.device.type == "cpu" and interpreted)):
        return "triton-device", {"device": q.device}
    if find_spec("triton") is None:
        return "triton-missing", {}
    found = torch.cuda.get_device_capability(q.device) if q.is_cuda else OLDEST
    if found < OLDEST:
        return "triton-old-gpu", {"found": _spelt(found), "oldest": _spelt(OLDEST), "backend": "chunked"}
    return None


def _spelt(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


class Asked(NamedTuple):
    """What the pass is to tell beside its output; with `top` a score that so many keys of each query reach."""

    lse: bool = False
    maximum: bool = False
    entropy: bool = False
    bins: Bins | None = None
    top: int = 0


class Told(NamedTuple):
    """What it told: out B H T Ev; in float32 lse, maximum and entropy B H T, and sums, B H R C, of weights in bins.

    threshold  B H T, a score not scaled that `top` keys reach where so many are seen; not every kernel tells it
    """

    out: Tensor
    lse: Tensor | None = None
    maximum: Tensor | None = None
    entropy: Tensor | None = None
    sums: Tensor | None = None
    threshold: Tensor | None = None


def room_for(asked: Asked, q: Tensor, v: Tensor) -> Told:
    """Where it is written; what a call without queries or keys leaves as it is: zeros, and an LSE of -inf."""
    (B, H, T, _), (S, Ev) = q.shape, v.shape[-2:]

    def full(value: float, *shape: int) -> Tensor:
        room = torch.empty((B, H, *shape), dtype=torch.float32, device=q.device)
        return room if T and S else room.fill_(value)

    make = q.new_empty if T and S else q.new_zeros
    return Told(
        out=make((B, H, T, Ev)),
        lse=full(-torch.inf, T) if asked.lse or asked.bins else None,
        maximum=full(-torch.inf, T) if asked.maximum else None,
        entropy=full(0, T) if asked.entropy else None,
        sums=full(0, asked.bins.R, asked.bins.C) if asked.bins else None,
    )


SMALLEST = 64
"""Queries of a tile, at least, where a text is long."""


def scratch_for(q: Tensor, k: Tensor, see: See | None, *, later: bool = False) -> int:
    """In bytes, at most. Up to 192 MiB, which a small map may take as well, are not counted.

    The pass that computes needs scratch and strips, each no larger than the map, or than 128 and 64 MiB; but strips of
    one head at least, one for each bin of queries and each tile of them. A walk that comes `later` keeps a sum for each
    row of the map, every tile of keys and every bin that this touches.
    """
    (B, H, T, E), S = q.shape, k.shape[2]
    bins = Bins.of(T, S, see)
    if bins is None:
        return 0
    rows = B * H * bins.R
    numbers = rows * bins.C + max(rows, bins.R - (-T // SMALLEST)) * bins.C
    if later:
        keys, wide = blocks_for(q.dtype, E, S, T).rows, bins.wide
        numbers = max(numbers, rows * -(-S // keys) * touched_by(keys, wide))
    return 4 * numbers


def touched_by(keys: int, wide: int) -> int:
    """How many bins so wide a tile of keys may touch, as a power of two.

    >>> touched_by(64, 1), touched_by(64, 128), touched_by(64, 100), touched_by(64, 10)
    (64, 1, 2, 8)
    """
    if wide % keys == 0 or keys % wide == 0:
        return max(1, keys // wide)
    return power_of_two((keys - 2) // wide + 2, 1)
