"""What the Triton kernels support: calls, masks as bands, tile sizes; and requests and results of a forward.

A mask is a band around each query, and segments; kept keys and prefixes become segments: keys that are not kept get a
segment that no query has. Tile sizes are tuned here and nowhere else. Does not import Triton.
"""

import os
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.masks import BoundMask
from regard.masks.bound import And
from regard.masks.intervals import segment_ranges
from regard.masks.rules import Band, Frame, KeyRule, Rule, Segments
from regard.records import See


@dataclass(frozen=True, slots=True, eq=False)
class MaskBands:
    """A mask as a band and segments; by default everything is visible.

    left, right  visible keys before and after the query's own; None is unlimited
    offset       the key position of query i is i + offset
    queries      the segment of each query, (1 or B) T, and `keys` of each key, (1 or B) S; integers
    """

    left: int | None = None
    right: int | None = None
    offset: int = 0
    queries: Tensor | None = None
    keys: Tensor | None = None

    def swapped(self) -> "MaskBands":
        """The same mask with the roles of queries and keys exchanged.

        >>> MaskBands(left=2, right=0, offset=3).swapped()
        MaskBands(left=0, right=2, offset=-3, queries=None, keys=None)
        """
        return MaskBands(self.right, self.left, -self.offset, self.keys, self.queries)


def is_supported(mask: BoundMask | None) -> bool:
    """Whether the kernels support this mask: a conjunction of bands, kept keys, prefixes and segments."""
    rules = [] if mask is None else _rules(mask)
    supported = all(isinstance(rule, Band | KeyRule | Segments) for rule in rules)
    return supported and sum(isinstance(rule, Segments) for rule in rules) <= 1


def mask_padding_queries(mask: BoundMask | None, is_text: Tensor, S: int) -> BoundMask:
    """The mask with queries fully masked where `is_text`, B T, is False: they get a segment that no key has."""
    B, T = is_text.shape
    ids = Segments(is_text.new_zeros((1, 1, 1, S), dtype=torch.int64), (~is_text)[:, None, :, None].to(torch.int64))
    if mask is None:
        return BoundMask(ids, Frame((B, 1), T, S, is_text))
    return replace(mask, rule=And((*_rules(mask), ids)))


def bands_of(mask: BoundMask | None) -> MaskBands:
    """The mask as MaskBands; for a mask that `is_supported`."""
    if mask is None:
        return MaskBands()
    frame, kept = mask.frame, None
    if type(mask.rule) is Band:
        return _one_band(mask.rule.left, mask.rule.right, mask.rule.offset(frame), frame.T, frame.S)
    bands = MaskBands(offset=frame.offset)
    for rule in _rules(mask):
        match rule:
            case Band():
                # Relative to the offset that all bands share; then a side may be negative.
                shift = rule.offset(mask.frame) - bands.offset
                left = None if rule.left is None else rule.left - shift
                right = None if rule.right is None else rule.right + shift
                bands = replace(bands, left=_minimum(bands.left, left), right=_minimum(bands.right, right))
            case Segments(keys=keys, queries=queries):
                assert queries is not None, "a bound mask knows its queries"
                bands = replace(bands, queries=queries[:, 0, :, 0], keys=keys[:, 0, 0])
            case KeyRule():
                keep = rule.visible_keys(mask.frame)[:, 0]
                kept = keep if kept is None else kept & keep
    bands = _without_redundant_edges(bands, mask.frame.T, mask.frame.S)
    return bands if kept is None else _with_kept_keys(bands, kept, mask.frame.T)


@lru_cache(maxsize=256)  # asked several times for each call, and layers repeat a mask
def _one_band(left: int | None, right: int | None, offset: int, T: int, S: int) -> MaskBands:
    """A single band, whose own offset becomes S − T."""
    shift = offset - (S - T)
    left, right = None if left is None else left - shift, None if right is None else right + shift
    return _without_redundant_edges(MaskBands(left, right, S - T), T, S)


def every_query_attends(bands: MaskBands) -> bool:
    """Whether every query certainly attends to some key, if there are keys: to key 0.

    >>> every_query_attends(MaskBands(right=0)), every_query_attends(MaskBands(right=0, offset=-1))
    (True, False)
    """
    sees_first = bands.right is None or bands.offset + bands.right >= 0
    return bands.queries is None and bands.left is None and sees_first


def _without_redundant_edges(bands: MaskBands, T: int, S: int) -> MaskBands:
    """The same without edges that mask nothing: kernels count in 32 bits.

    >>> _without_redundant_edges(MaskBands(left=2**40, right=0), T=4, S=4)
    MaskBands(left=None, right=0, offset=0, queries=None, keys=None)
    """
    left = None if bands.left is None or bands.left >= T - 1 + bands.offset else bands.left
    right = None if bands.right is None or bands.offset + bands.right >= S - 1 else bands.right
    return replace(bands, left=left, right=right)


def _with_kept_keys(bands: MaskBands, kept: Tensor, T: int) -> MaskBands:
    """The same, with keys masked where `kept`, (1 or B) S, is False."""
    queries = kept.new_zeros((1, T), dtype=torch.int64) if bands.queries is None else bands.queries
    keys = queries.new_zeros(()) if bands.keys is None else bands.keys
    unused_segment = queries.amin() - 1 if T else queries.new_zeros(())  # a segment that no query has
    return replace(bands, queries=queries, keys=torch.where(kept, keys, unused_segment))


def visible_ranges(bands: MaskBands, rows: int) -> Tensor:
    """The keys visible to each tile of `rows` queries by segments, (1 or B) tiles 4: two ranges of keys.

    Outside the first range every key is masked for every query of the tile; inside the second, every key is visible to
    all. Needs one sort, no synchronisation with the host, and no T × S tensor.

    >>> ids = torch.tensor([[0, 0, 0, 1, 1, 2]])
    >>> visible_ranges(MaskBands(queries=ids, keys=ids), rows=2).tolist()
    [[[0, 3, 0, 3], [0, 5, 3, 3], [3, 6, 5, 5]]]
    """
    runs = segment_ranges(bands.queries, bands.keys)
    assert runs.order is not None, "segments are sorted"
    S, has_keys = runs.order.shape[1], runs.first < runs.end
    first = torch.where(has_keys, runs.order.gather(1, runs.first.clamp(max=S - 1)), S)
    end = torch.where(has_keys, runs.order.gather(1, (runs.end - 1).clamp(min=0)) + 1, 0)
    is_contiguous = has_keys & (end - first == runs.end - runs.first)
    columns = (
        _by_tile(first, rows, S).amin(-1),
        _by_tile(end, rows, 0).amax(-1),
        _by_tile(torch.where(is_contiguous, first, S), rows, 0).amax(-1),
        _by_tile(torch.where(is_contiguous, end, 0), rows, S).amin(-1),
    )
    low, high, full_low, full_high = columns
    return torch.stack((low, high, full_low, torch.maximum(full_low, full_high)), dim=-1).int()


def _by_tile(x: Tensor, rows: int, fill: int) -> Tensor:
    """B T as B tiles rows; positions beyond the end of the last tile are `fill`."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % rows), value=fill).unflatten(1, (-1, rows))


def _rules(mask: BoundMask) -> tuple[Rule, ...]:
    return mask.rule.rules if isinstance(mask.rule, And) else (mask.rule,)


def _minimum(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


class Blocks(NamedTuple):
    """Rows and keys of a tile; warps and pipeline stages of a program."""

    rows: int
    keys: int
    warps: int
    stages: int


MAX_HEAD_WIDTH = 256
"""The largest supported head width."""

# By bytes per number and head width. Half precision up to width 128 was tuned on an H200; the others keep a tile of
# queries and two stages of keys and values below its 227 KiB of shared memory.
BLOCKS = {
    (2, 32): Blocks(128, 64, 4, 3),
    (2, 64): Blocks(64, 128, 4, 2),
    (2, 128): Blocks(128, 64, 4, 2),
    (2, 256): Blocks(128, 64, 8, 2),
    (4, 32): Blocks(64, 64, 4, 2),
    (4, 64): Blocks(64, 32, 8, 2),
    (4, 128): Blocks(64, 32, 8, 2),
    (4, 256): Blocks(32, 32, 8, 2),
}

SEARCH_BLOCKS = BLOCKS | {(2, 64): Blocks(64, 64, 4, 3), (2, 128): Blocks(64, 64, 4, 2)}
"""The same for the search for top keys, which multiplies half as much."""

PROGRAMS_PER_PROCESSOR = 2
"""Programs with scratch for a map that run on one processor at once."""


def power_of_two(n: int, least: int = 16) -> int:
    """The next power of two, at least `least`: the side of a tile, which products require to be 16 or more.

    >>> power_of_two(3), power_of_two(80), power_of_two(128)
    (16, 128, 128)
    """
    return max(least, 1 << max(0, n - 1).bit_length())


def blocks_for(
    dtype: torch.dtype,
    E: int,
    T: int,
    S: int,
    bin_width: int | None = None,
    table: dict[tuple[int, int], Blocks] = BLOCKS,
) -> Blocks:
    """The table's blocks, smaller where there are fewer queries or keys, or where the bins of a map are narrow.

    >>> blocks_for(torch.bfloat16, 80, 1, 5000)
    Blocks(rows=16, keys=64, warps=4, stages=2)
    """
    blocks = table[dtype.itemsize, power_of_two(E, 32)]
    rows, keys = min(blocks.rows, power_of_two(T)), min(blocks.keys, power_of_two(S))
    if bin_width is not None and bin_width < keys:
        keys = min(keys, 64)  # the more bins end in a tile, the more is stored at once
    return blocks._replace(rows=rows, keys=keys, warps=blocks.warps if rows == blocks.rows else min(4, blocks.warps))


def programs(device: torch.device) -> int:
    """The number of programs with scratch for a map; few under Triton's interpreter, so that each has several tiles."""
    return PROGRAMS_PER_PROCESSOR * (
        torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    )


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
