"""The forward as an autograd function: output, LSE, entropy and map sums, differentiable in q, k and v.

The tensors saved for the backward grow linearly with the sequence: q, k, v, the output, the LSE, and the entropy if
requested.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.errors import BackendError
from regard.kernels.division import Bins
from regard.kernels.triton.backward import (
    BackwardArguments,
    ForwardOutputs,
    key_gradients_kernel,
    query_gradients_kernel,
    row_terms_kernel,
)
from regard.kernels.triton.forward import forward
from regard.kernels.triton.support import Blocks, ForwardRequest, ForwardResult, MaskBands, bands_of, power_of_two
from regard.kernels.triton.tiles import LOG2E, Limits, launch, loop_parts, tiled_tensors


class BackwardBlocks(NamedTuple):
    """Block sizes of the two backward passes: one program per tile of keys, and one per tile of queries.

    `rows` of a block is the program's own tile, `keys` the streamed tile, whichever of the two they hold.
    """

    keys: Blocks
    queries: Blocks


# By bytes per number and head width, as in `blocks`. In half precision up to width 128, without map and softcap, the
# loop over fully visible tiles spills no register.
BACKWARD_BLOCKS = {
    (2, 32): BackwardBlocks(keys=Blocks(128, 64, 8, 3), queries=Blocks(128, 128, 8, 2)),
    (2, 64): BackwardBlocks(keys=Blocks(64, 64, 4, 3), queries=Blocks(128, 64, 4, 3)),
    (2, 128): BackwardBlocks(keys=Blocks(64, 64, 4, 2), queries=Blocks(128, 64, 8, 3)),
    (2, 256): BackwardBlocks(keys=Blocks(64, 32, 8, 2), queries=Blocks(64, 64, 8, 2)),
    (4, 32): BackwardBlocks(keys=Blocks(64, 32, 4, 2), queries=Blocks(64, 32, 4, 2)),
    (4, 64): BackwardBlocks(keys=Blocks(32, 32, 8, 2), queries=Blocks(32, 32, 8, 2)),
    (4, 128): BackwardBlocks(keys=Blocks(32, 16, 8, 2), queries=Blocks(32, 16, 8, 2)),
    (4, 256): BackwardBlocks(keys=Blocks(16, 16, 8, 1), queries=Blocks(16, 16, 8, 1)),
}


def attention_with_gradient(
    call: AttentionCall, request: ForwardRequest, *, blocks: BackwardBlocks | None = None
) -> ForwardResult:
    """The forward of a call whose tensors have one dtype and device; the result can be differentiated once."""
    options = _CallOptions(bands_of(call.bound), call.scale, call.softcap, request.bins, blocks)
    return ForwardResult(*_Attention.apply(call.q, call.k, call.v, request, options))


class _CallOptions(NamedTuple):
    """The options shared by forward and backward. The tensors are saved by autograd and nowhere else."""

    bands: MaskBands
    scale: float
    softcap: float | None
    bins: Bins | None
    blocks: BackwardBlocks | None

    def call(self, q: Tensor, k: Tensor, v: Tensor) -> AttentionCall:
        return AttentionCall(q, k, v, self.scale, softcap=self.softcap)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, request: ForwardRequest, options: _CallOptions
    ) -> ForwardResult:
        request_with_lse = request._replace(lse=True)
        result = forward(options.call(q, k, v), options.bands, request_with_lse)
        ctx.save_for_backward(q, k, v, result.out, result.lse, result.entropy)
        ctx.options = options
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(x for x in (result.maximum, result.threshold) if x is not None))
        return result if request.lse else result._replace(lse=None)

    @staticmethod
    def backward(
        ctx: Any,
        d_out: Tensor | None,
        d_lse: Tensor | None,
        _maximum: None,
        d_entropy: Tensor | None,
        d_sums: Tensor | None,
        _threshold: None,
    ) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # only under create_graph=True
            raise BackendError("no-second-gradients")
        q, k, v, out, lse, entropy = ctx.saved_tensors
        if d_out is None:
            d_out = torch.zeros_like(out)
        elif d_out.stride(-1) != 1 or 0 in d_out.stride():
            d_out = d_out.contiguous()  # the gradient of a sum, for example, is one expanded number
        if _may_mask_queries(ctx.options.bands):
            d_out = d_out.masked_fill((lse == -torch.inf)[..., None], 0)  # 0 · inf would be NaN
        outputs = ForwardOutputs(
            out, lse, *(None if x is None else x.contiguous() for x in (d_lse, entropy, d_entropy))
        )
        call = ctx.options.call(q, k, v)
        return (*_gradients(call, ctx.options, d_out, outputs, d_sums, ctx.needs_input_grad), None, None)


def _may_mask_queries(bands: MaskBands) -> bool:
    """Whether some query may be fully masked, judged without reading tensors."""
    return bands.queries is not None or (bands.left or 0) < 0 or bands.offset + (bands.right or 0) < 0


class _Side(NamedTuple):
    """Queries or keys: tensors of a pass (width of a key, width of a value), their length, and the size of a bin."""

    tensors: tuple[Tensor, Tensor]
    length: int
    bin_size: int | None


def _gradients(
    call: AttentionCall,
    options: _CallOptions,
    d_out: Tensor,
    outputs: ForwardOutputs,
    d_sums: Tensor | None,
    needs_grad: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of q, k and v."""
    q, k, v = call.q, call.k, call.v
    if not (q.numel() and k.numel()):
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    args, bands, bins = (
        _backward_arguments(call, options.bins, outputs, d_sums),
        options.bands,
        options.bins if d_sums is not None else None,
    )
    queries = _Side((q, d_out), q.shape[2], bins.height if bins else None)
    keys = _Side((k, v), k.shape[2], bins.width if bins else None)
    blocks = options.blocks or BACKWARD_BLOCKS[q.itemsize, power_of_two(max(q.shape[-1], v.shape[-1]), 32)]
    _launch_pass(row_terms_kernel, blocks.queries, args, queries, keys, bands, outputs)
    d_q = d_k = d_v = None
    if needs_grad[1] or needs_grad[2]:
        d_k, d_v = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (k, v))
        _launch_pass(key_gradients_kernel, blocks.keys, args, keys, queries, bands.swapped(), d_k, d_v)
    if needs_grad[0]:
        d_q = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        _launch_pass(query_gradients_kernel, blocks.queries, args, queries, keys, bands, d_q)
    return d_q, d_k, d_v


def _backward_arguments(
    call: AttentionCall, bins: Bins | None, outputs: ForwardOutputs, d_sums: Tensor | None
) -> BackwardArguments:
    """The arguments of all three kernels, with buffers for the values per row."""
    q, k = call.q, call.k
    shift, delta, slope = torch.empty((3, *q.shape[:3]), dtype=torch.float32, device=q.device)
    return BackwardArguments(
        H=q.shape[1],
        T=q.shape[2],
        S=k.shape[2],
        scale=call.scale * LOG2E,
        cap=None if call.softcap is None else call.softcap * LOG2E,
        shift=shift,
        delta=delta,
        slope=None if outputs.d_entropy is None else slope,
        sums=None if d_sums is None else d_sums.contiguous(),
        R=bins.R if bins else 0,
        C=bins.C if bins else 0,
        bin_height=bins.height if bins else 0,
        bin_width=bins.width if bins else 0,
    )


def _launch_pass(
    kernel: Any,
    blocks: Blocks,
    args: BackwardArguments,
    own: _Side,
    streamed: _Side,
    bands: MaskBands,
    *rest: Tensor | ForwardOutputs,
) -> None:
    """Launch a kernel whose programs own tiles of one side and loop over the other; `bands` is that of the own side."""
    rows, step = min(blocks.rows, power_of_two(own.length)), min(blocks.keys, power_of_two(streamed.length))
    if streamed.bin_size is not None:
        step = min(step, max(16, 1 << (streamed.bin_size.bit_length() - 1)))  # then at most one bin ends in a tile
    limits = Limits.of(bands, rows)
    tensors, uses_tma = tiled_tensors(*((x, rows) for x in own.tensors), *((x, step) for x in streamed.tensors))
    E, Ev = (x.shape[-1] for x in own.tensors)
    constants: dict[str, Any] = {"E": E, "EV": Ev, "BLOCK_E": power_of_two(E), "BLOCK_EV": power_of_two(Ev)}
    constants |= {
        "OWN": rows,
        "STREAMED": step,
        "TMA": uses_tma,
        "BINS_TOUCHED": _bins_touched(streamed.bin_size, step),
    }
    constants |= loop_parts(limits, streamed.length % step == 0)
    constants["GROUP_SIZE"] = args.H // min(side.tensors[0].shape[1] for side in (own, streamed))
    programs = own.tensors[0].shape[:2].numel() * -(-own.length // rows)
    warps = blocks.warps if rows == blocks.rows else min(4, blocks.warps)
    blocks = Blocks(rows, step, warps, blocks.stages)
    launch(kernel, programs, blocks, own.tensors[0], args, *tensors, limits, *rest, **constants)


def _bins_touched(bin_size: int | None, step: int) -> str:
    """The number of bins that a tile of `step` positions may touch: the constant BINS_TOUCHED; "" without a map.

    >>> _bins_touched(None, 64), _bins_touched(128, 64), _bins_touched(100, 64), _bins_touched(10, 16)
    ('', 'one', 'two', 'any')
    """
    if bin_size is None:
        return ""
    return "one" if bin_size % step == 0 else "two" if bin_size > step else "any"
