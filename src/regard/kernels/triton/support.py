"""Which calls the Triton kernels support; the request and result types of a forward; an estimate of its scratch memory.

Does not import Triton.
"""

import os
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.tiles import Bins
from regard.kernels.triton.mask_bands import is_supported, mask_padding_queries
from regard.kernels.triton.tile_sizes import MAX_HEAD_WIDTH, blocks_for, power_of_two
from regard.masks import BoundMask
from regard.records import See

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
MAX_TOP = 32
"""The largest supported top-k: a program keeps the keys in registers."""
MIN_CAPABILITY = (8, 0)
"""The lowest compute capability for which Triton compiles all of these dtypes."""

Reason = tuple[str, dict[str, Any]]


def refusal(call: AttentionCall) -> Reason | None:
    """The reason why a call is not supported, with the values for its message; None if it is supported.

    >>> x = torch.zeros(1, 1, 4, 32, dtype=torch.float64, device="meta")
    >>> refusal(AttentionCall(x, x, x, scale=1.0))[0]
    'triton-device'
    """
    if torch.compiler.is_compiling():
        return "triton-tracing", {"backend": "eager"}
    q, see = call.q, call.see
    machine = _machine_refusal(q)
    if machine is not None:
        return machine
    width = max(q.shape[-1], call.v.shape[-1])
    if call.dropout:
        return "no-dropout", {"backend": "eager"}
    if q.dtype not in DTYPES:
        return "triton-dtype", {"dtype": str(q.dtype).removeprefix("torch."), "backend": "chunked"}
    if width > MAX_HEAD_WIDTH:
        return "triton-width", {"width": width, "most": MAX_HEAD_WIDTH, "backend": "chunked"}
    if call.bias is not None:
        return "triton-bias", {"backend": "chunked"}
    if not is_supported(call.bound):
        return "triton-mask", {"backend": "chunked"}
    if see is not None and see.differentiable and not is_supported(_statistics_mask(call)):
        return "triton-padding", {"backend": "eager"}
    if see is not None and see.top is not None and see.top > MAX_TOP:
        return "triton-top", {"top": see.top, "most": MAX_TOP, "backend": "chunked"}
    return None


def _statistics_mask(call: AttentionCall) -> BoundMask | None:
    """The mask of a forward in which padding queries are fully masked."""
    if call.padding is None or call.padding.queries is None:
        return call.bound
    return mask_padding_queries(call.bound, call.padding.queries, call.k.shape[2])


def _machine_refusal(q: Tensor) -> Reason | None:
    """Why this device or this installation cannot run the kernels, or None.

    The interpreter runs kernels on the CPU: for our tests only, not for users who set TRITON_INTERPRET=1, because it
    multiplies bfloat16 incorrectly, and everything slowly.
    """
    if q.is_cuda:
        return _gpu_refusal(q.device)
    interpreted = os.environ.get("TRITON_INTERPRET") == os.environ.get("REGARD_INTERPRET") == "1"
    if not (interpreted and q.device.type == "cpu"):
        return "triton-device", {"device": q.device}
    return None if _has_triton() else ("triton-missing", {})


@cache
def _gpu_refusal(device: torch.device) -> Reason | None:
    """The same for a GPU, asked once: it cannot change, and a watch of a short text asks for every batch."""
    if torch.version.hip:
        return "triton-device", {"device": device}
    if not _has_triton():
        return "triton-missing", {}
    found = torch.cuda.get_device_capability(device)
    if found >= MIN_CAPABILITY:
        return None
    values = {"found": _version_text(found), "oldest": _version_text(MIN_CAPABILITY), "backend": "chunked"}
    return "triton-old-gpu", values


def _has_triton() -> bool:
    return find_spec("triton") is not None


def _version_text(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


class ForwardRequest(NamedTuple):
    """What the forward computes besides its output; with `top`, a score that `top` keys of each query reach."""

    lse: bool = False
    maximum: bool = False
    entropy: bool = False
    bins: Bins | None = None
    top: int = 0


class ForwardResult(NamedTuple):
    """The forward's results: out B H T Ev; in float32 lse, maximum, entropy B H T, and sums of weights in bins B H R C.

    threshold  B H T, an unscaled score that `top` keys reach if that many are visible; not every kernel computes it
    """

    out: Tensor
    lse: Tensor | None = None
    maximum: Tensor | None = None
    entropy: Tensor | None = None
    sums: Tensor | None = None
    threshold: Tensor | None = None


def allocate_result(request: ForwardRequest, q: Tensor, v: Tensor) -> ForwardResult:
    """The result tensors; for a call without queries or keys they are final: zeros, and an LSE of -inf."""
    (B, H, T, _), (S, Ev) = q.shape, v.shape[-2:]

    def filled(value: float, *shape: int) -> Tensor:
        tensor = torch.empty((B, H, *shape), dtype=torch.float32, device=q.device)
        return tensor if T and S else tensor.fill_(value)

    new_output = q.new_empty if T and S else q.new_zeros
    return ForwardResult(
        out=new_output((B, H, T, Ev)),
        lse=filled(-torch.inf, T) if request.lse or request.bins else None,
        maximum=filled(-torch.inf, T) if request.maximum else None,
        entropy=filled(0, T) if request.entropy else None,
        sums=filled(0, request.bins.R, request.bins.C) if request.bins else None,
    )


MIN_TILE_ROWS = 64
"""The smallest number of queries of a tile where the sequence is long."""


def scratch_for(call: AttentionCall, *, later: bool = False) -> int:
    """The scratch memory of a map in bytes, at most. Up to 192 MiB, which a small map may also take, are not counted.

    The forward needs scratch and strips, each no larger than the map, or than 128 and 64 MiB; but at least the strips
    of one head, one for each bin of queries and each tile. A second pass (`later`) keeps a sum for each row of the map,
    each tile of keys, and each bin that the tile touches; none for a map of single weights (`is_map_of_weights`).
    """
    (B, H, T, E), S = call.q.shape, call.k.shape[2]
    bins = Bins.of(T, S, call.see)
    if bins is None:
        return 0
    rows = B * H * bins.R
    numbers = rows * bins.C + max(rows, bins.R - (-T // MIN_TILE_ROWS)) * bins.C
    if later and not is_map_of_weights(bins, call.see):
        keys, bin_width = blocks_for(call.q.dtype, E, S, T).rows, bins.width
        numbers = max(numbers, rows * -(-S // keys) * bins_per_tile(keys, bin_width))
    return 4 * numbers


def is_map_of_weights(bins: Bins, see: See | None) -> bool:
    """Whether a second pass writes the map as it is: one weight in each bin, and no other sum over queries."""
    return see is not None and bins.height == bins.width == 1 and not (see.received or see.distance)


def bins_per_tile(keys: int, bin_width: int) -> int:
    """The number of bins of `bin_width` keys that a tile of keys may touch, as a power of two.

    >>> bins_per_tile(64, 1), bins_per_tile(64, 128), bins_per_tile(64, 100), bins_per_tile(64, 10)
    (64, 1, 2, 8)
    """
    if bin_width % keys == 0 or keys % bin_width == 0:
        return max(1, keys // bin_width)
    return power_of_two((keys - 2) // bin_width + 2, 1)
