"""Launch of the Hopper kernels: supported calls, tensor descriptors, number of programs, buffers of a map."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import torch
import triton
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from regard.attention_call import AttentionCall
from regard.kernels.division import Bins
from regard.kernels.triton.hopper.bins import MapBuffers
from regard.kernels.triton.hopper.config import (
    HEADS_TOGETHER,
    KEYS,
    L2_BYTES,
    MAP_CONFIG,
    MIN_WAVES,
    NARROWEST,
    RECEIVED_CONFIG,
    ROWS,
    SEARCH_CONFIG,
    WIDTHS,
    KernelConfig,
    block_size_for,
    config_for,
    is_aligned,
)
from regard.kernels.triton.hopper.forward import forward_kernel
from regard.kernels.triton.hopper.second_pass import second_pass_kernel
from regard.kernels.triton.hopper.tiles import HopperArguments
from regard.kernels.triton.pooling import bin_layout, max_strips, sum_strips
from regard.kernels.triton.second_pass import padded_shifts
from regard.kernels.triton.support import ForwardRequest, ForwardResult, MaskBands
from regard.kernels.triton.tiles import FP_FUSION, LOG2E, can_use_tma, on_device
from regard.kernels.triton.top_keys import LIST_SIZE, MAX_LISTED_TOP, Candidates

STRIP_LIMIT = 5 * 2**20
"""Numbers in all strips: 20 MiB, or the size of the map if larger, or of one head if larger."""

SCRATCH_LIMIT = 2**25
"""Numbers in all scratch: 128 MiB, or the size of the map. With half, a map 1024 wide idles a third of an H200."""

GLUON = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


@cache
def layout_for(dtype: torch.dtype, *block: int) -> Any:
    """The shared memory layout of a tile that TMA writes and the tensor cores read."""
    return gl.NVMMASharedLayout.get_default_for(list(block), GLUON[dtype])


def descriptor(x: Tensor, rows: int) -> TensorDescriptor:
    """A TMA descriptor of B H T E in tiles of `rows` rows."""
    block = [1, 1, rows, x.shape[3]]
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout_for(x.dtype, *block))


def programs_for(tiles: int, device: torch.device) -> int:
    """One program per processor: it occupies it fully."""
    return min(tiles, processors(device))


@cache
def processors(device: torch.device) -> int:
    """The number of processors (SMs) of the GPU."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def heads_per_group(heads: int, max_heads: int) -> int:
    """The number of heads launched together, at most `max_heads` and at least one. Groups are as even as possible, so
    that there are few sizes: Triton compiles separate kernels for a size of 1, for multiples of 16 and for others.

    >>> heads_per_group(16, 15), heads_per_group(16, 100), heads_per_group(7, 0)
    (8, 16, 1)
    """
    return -(-heads // -(-heads // max(1, max_heads)))


def bins_supported(bins: Bins) -> bool:
    """Whether the bins are large enough.

    >>> bins_supported(Bins(height=256, width=79, R=4, C=16)), bins_supported(Bins(height=256, width=15, R=4, C=11))
    (True, False)
    """
    return min(bins.width, bins.height) >= NARROWEST


def launch_with_map(
    args: HopperArguments,
    bins: Bins,
    sums: Tensor,
    consumers: int,
    launch: Callable[[HopperArguments, MapBuffers, int, dict[str, Any]], None],
) -> None:
    """Write the sums, (B·H, R, C). Where a bin of queries is a consumer's tile, or a fraction of one, consumers write
    the map itself; otherwise strips, for heads in groups to limit their number, which are then added up.
    """
    tiles = triton.cdiv(args.T, consumers * ROWS)
    writes_map = ROWS % bins.height == 0  # then consumers write the map itself
    strips_per_head = bins.R if writes_map else max_strips(args.T, bins, ROWS)
    group = (
        args.heads
        if writes_map
        else heads_per_group(args.heads, max(STRIP_LIMIT, sums.numel()) // (strips_per_head * bins.C))
    )
    max_programs = max(1, max(SCRATCH_LIMIT, sums.numel()) // (consumers * bins.C * ROWS))  # with scratch for each
    scratch = sums.new_empty((min(max_programs, programs_for(tiles * group, sums.device)), consumers, bins.C, ROWS))
    strips = sums if writes_map else sums.new_empty((group, strips_per_head, bins.C))
    for first in range(0, args.heads, group):
        group_args = args._replace(first=first, heads=min(group, args.heads - first))
        programs = min(len(scratch), programs_for(tiles * group_args.heads, sums.device))
        launch(
            group_args,
            MapBuffers(scratch, strips, strips_per_head, bins.height, bins.width, bins.C),
            programs,
            _constants_for(bins),
        )
        if not writes_map:
            sum_strips(strips[: group_args.heads], bins, ROWS, sums[first : first + group_args.heads])


def _constants_for(bins: Bins) -> dict[str, Any]:
    """BINS as in `pooling`; BIN_UNIT, the width of a bin or of a block; PIECES, see `sum_bin_rows`.

    >>> _constants_for(Bins(height=32, width=256, R=4, C=4))
    {'BINS': 'wide', 'BIN_UNIT': 1, 'PIECES': 2}
    >>> _constants_for(Bins(height=79, width=79, R=4, C=4))
    {'BINS': 'uneven', 'BIN_UNIT': 64, 'PIECES': 0}
    """
    constants = bin_layout(bins, ROWS, KEYS)
    bin_unit = constants["BIN_UNIT"] if is_aligned(bins.width) else block_size_for(bins.width)
    return {"BINS": constants["BINS"], "BIN_UNIT": bin_unit, "PIECES": 0 if ROWS % bins.height else ROWS // bins.height}


NO_BINS = {"BINS": "", "BIN_UNIT": 0, "PIECES": 1}

LIST_LIMIT = 2**24
"""Keys in all lists: 64 MiB, or one head's."""


def supports(call: AttentionCall, bands: MaskBands, bins: Bins | None, *, with_values: bool = False) -> bool:
    """Whether the kernels support the call: half precision, head width 64 or 128, no mask or causal with an offset,
    bins that are large enough. The values count only for the forward.
    """
    q = call.q
    tensors, E = (q, call.k, call.v) if with_values else (q, call.k), q.shape[3]
    return (
        E in WIDTHS
        and all(x.shape[3] == E and can_use_tma(x) for x in tensors)
        and q.dtype in GLUON
        and q.shape[2] >= ROWS
        and bands.queries is None
        and bands.left is None
        and call.softcap is None
        and call.scale > 0
        and (bins is None or bins_supported(bins))
    )


def forward(call: AttentionCall, bands: MaskBands, request: ForwardRequest, result: ForwardResult) -> ForwardResult:
    """Write the requested statistics and thresholds into `result` and return it, for a call that is supported."""
    q, k, v = call.q, call.k, call.v
    if 0 < request.top <= MAX_LISTED_TOP:
        result = result._replace(threshold=torch.empty(q.shape[:3], dtype=torch.float32, device=q.device))
    config = config_for(q.shape[3], request, is_causal=bands.right is not None)
    fills_processors = triton.cdiv(q.shape[2], config.rows) >= MIN_WAVES * processors(q.device)
    if not fills_processors or k[0, 0].nbytes + v[0, 0].nbytes <= L2_BYTES:
        _forward(call, bands, request, result, config)
        return result
    group_size = q.shape[1] // k.shape[1]
    for sample, h in product(range(q.shape[0]), range(q.shape[1])):
        query_head = slice(sample, sample + 1), slice(h, h + 1)
        key_head = slice(sample, sample + 1), slice(h // group_size, h // group_size + 1)
        head_result = result._replace(**{name: x[query_head] for name, x in result._asdict().items() if x is not None})
        one_head = replace(call, q=q[query_head], k=k[key_head], v=v[key_head])
        _forward(one_head, bands, request, head_result, config)
    return result


def _forward(
    call: AttentionCall, bands: MaskBands, request: ForwardRequest, result: ForwardResult, config: KernelConfig
) -> None:
    q, k, v = call.q, call.k, call.v
    args = _arguments(
        call,
        bands,
        call.scale,
        out=result.out,
        lse=result.lse,
        maximum=result.maximum,
        entropy=result.entropy,
        threshold=result.threshold,
    )
    flags = {
        "LSE": result.lse is not None,
        "MAXIMUM": result.maximum is not None,
        "ENTROPY": result.entropy is not None,
        "TOP": request.top if result.threshold is not None else 0,
    }

    def launch(args: HopperArguments, buffers: MapBuffers, programs: int, constants: dict[str, Any]) -> None:
        with on_device(q):
            forward_kernel[(programs,)](
                args,
                buffers,
                descriptor(q, ROWS),
                descriptor(k, KEYS),
                descriptor(v, KEYS),
                CONSUMERS=config.consumers,
                STAGES=config.stages,
                REGISTERS=config.registers,
                ACCUMULATE=config.accumulate,
                SOFTMAX_FIRST=config.softmax_first,
                SCATTER=config.scatter,
                CAUSAL=bands.right is not None,
                query_layout=layout_for(q.dtype, ROWS, q.shape[3]),
                key_layout=layout_for(q.dtype, KEYS, q.shape[3]),
                num_warps=4,
                **FP_FUSION,
                **flags,
                **constants,
            )

    if request.bins is None or result.sums is None:
        tiles = args.heads * triton.cdiv(args.T, config.rows)
        launch(args, _no_buffers(result.out), programs_for(tiles, q.device), NO_BINS)
    else:
        launch_with_map(args, request.bins, result.sums.flatten(0, 1), config.consumers, launch)


def map_of(call: AttentionCall, bands: MaskBands, lse: Tensor, bins: Bins) -> Tensor:
    """Sums of weights over the bins, B H R C, from the LSE, B H T in nats; for a call that is supported."""
    sums = lse.new_empty(*lse.shape[:2], bins.R, bins.C)
    args = _arguments(call, bands, call.scale, out=sums, lse=lse.contiguous())

    def launch(args: HopperArguments, buffers: MapBuffers, programs: int, constants: dict[str, Any]) -> None:
        _launch_second_pass(args, buffers, call.q, call.k, programs, bands, "map", MAP_CONFIG, constants)

    launch_with_map(args, bins, sums.flatten(0, 1), MAP_CONFIG.consumers, launch)
    return sums


def received_of(call: AttentionCall, bands: MaskBands, lse: Tensor) -> Tensor:
    """The weight received by each key, B H S, from the LSE, B H T in nats; for a call that is supported."""
    q, k = call.q, call.k
    sums = lse.new_empty(*lse.shape[:2], k.shape[2])
    args = _arguments(call, bands, call.scale, out=sums, lse=padded_shifts(lse, RECEIVED_CONFIG.streamed))
    programs = programs_for(args.heads * triton.cdiv(args.S, RECEIVED_CONFIG.rows), q.device)
    _launch_second_pass(args, _no_buffers(sums), k, q, programs, bands, "received", RECEIVED_CONFIG, NO_BINS)
    return sums


def thresholds_of(call: AttentionCall, bands: MaskBands, top: int) -> Tensor:
    """An unscaled score, B H T, that `top` keys reach if that many are visible; `top` is at most MAX_LISTED_TOP."""
    q, k = call.q, call.k
    thresholds = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    args = _arguments(call, bands, 1.0, out=thresholds, threshold=thresholds)
    programs = programs_for(args.heads * triton.cdiv(args.T, SEARCH_CONFIG.rows), q.device)
    _launch_second_pass(
        args, _no_buffers(thresholds), q, k, programs, bands, "thresholds", SEARCH_CONFIG, NO_BINS, top=top
    )
    return thresholds


def candidates_of(call: AttentionCall, bands: MaskBands, threshold: Tensor) -> Iterator[tuple[int, Candidates]]:
    """The keys that reach the threshold, B H T, an unscaled score; for heads in groups, each with its first head."""
    q, k = call.q, call.k
    T, heads = q.shape[2], q.shape[0] * q.shape[1]
    group = heads_per_group(heads, LIST_LIMIT // (T * LIST_SIZE))
    counts = torch.empty((group, T), dtype=torch.int32, device=q.device)
    lists = torch.empty((group, T, LIST_SIZE), dtype=torch.int32, device=q.device)
    args = _arguments(call, bands, 1.0, out=lists, threshold=threshold.contiguous(), counts=counts)
    for first in range(0, heads, group):
        group_args = args._replace(first=first, heads=min(group, heads - first))
        programs = programs_for(group_args.heads * triton.cdiv(T, SEARCH_CONFIG.rows), q.device)
        _launch_second_pass(
            group_args, _no_buffers(threshold), q, k, programs, bands, "candidates", SEARCH_CONFIG, NO_BINS
        )
        yield first, Candidates(counts[: group_args.heads], lists[: group_args.heads])


def _launch_second_pass(
    args: HopperArguments,
    buffers: MapBuffers,
    own: Tensor,
    streamed: Tensor,
    programs: int,
    bands: MaskBands,
    work: str,
    config: KernelConfig,
    constants: dict[str, Any],
    *,
    top: int = 0,
) -> None:
    with on_device(own):
        second_pass_kernel[(programs,)](
            args,
            buffers,
            descriptor(own, ROWS),
            descriptor(streamed, config.streamed),
            CONSUMERS=config.consumers,
            STAGES=config.stages,
            REGISTERS=config.registers,
            WORK=work,
            TOP=top,
            CAUSAL=bands.right is not None,
            own_layout=layout_for(own.dtype, ROWS, own.shape[3]),
            streamed_layout=layout_for(own.dtype, config.streamed, own.shape[3]),
            num_warps=4,
            **FP_FUSION,
            **constants,
        )


def _arguments(
    call: AttentionCall,
    bands: MaskBands,
    scale: float,
    *,
    out: Tensor,
    lse: Tensor | None = None,
    maximum: Tensor | None = None,
    entropy: Tensor | None = None,
    threshold: Tensor | None = None,
    counts: Tensor | None = None,
) -> HopperArguments:
    (B, H, T, _), (G, S) = call.q.shape, call.k.shape[1:3]
    return HopperArguments(
        first=0,
        heads=B * H,
        heads_together=HEADS_TOGETHER,
        H=H,
        group_size=H // G,
        T=T,
        S=S,
        edge=0 if bands.right is None else bands.offset + bands.right,
        scale=scale * LOG2E,
        out=out,
        lse=out if lse is None else lse,
        maximum=out if maximum is None else maximum,
        entropy=out if entropy is None else entropy,
        threshold=out if threshold is None else threshold,
        counts=out if counts is None else counts,
    )


def _no_buffers(x: Tensor) -> MapBuffers:
    return MapBuffers(x, x, 1, 1, 1, 1)
