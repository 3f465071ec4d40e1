"""The forward as autograd sees it: output, LSE, entropy and the map's sums, all with gradients for q, k and v.

What is kept for the backward is linear in the text: q, k, v, the output, the LSE, and the entropy if it was asked for.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.errors import BackendError
from regard.kernels.tiles import Bins
from regard.kernels.triton.backward import Known, Rows, keys_kernel, prepare_kernel, queries_kernel
from regard.kernels.triton.forward_launch import forward
from regard.kernels.triton.launch import launch
from regard.kernels.triton.mask_bands import Sight, sight_of
from regard.kernels.triton.support import Asked, Told
from regard.kernels.triton.tile_sizes import Blocks, power_of_two
from regard.kernels.triton.tiles import LOG2E, Limits, parts_of_walk, tensors_in_tiles
from regard.masks import BoundMask


class Walks(NamedTuple):
    """Blocks of the two walks, one that owns keys and one that owns queries.

    `rows` of a block are what a program owns, `keys` what passes by, whichever they are.
    """

    keys: Blocks
    queries: Blocks


# By bytes of a number and width of a head, as in `blocks`. In half precision up to 128, without map and softcap, the
# loop over tiles that all see spills no register.
WALKS = {
    (2, 32): Walks(keys=Blocks(128, 64, 8, 3), queries=Blocks(128, 128, 8, 2)),
    (2, 64): Walks(keys=Blocks(64, 64, 4, 3), queries=Blocks(128, 64, 4, 3)),
    (2, 128): Walks(keys=Blocks(64, 64, 4, 2), queries=Blocks(128, 64, 8, 3)),
    (2, 256): Walks(keys=Blocks(64, 32, 8, 2), queries=Blocks(64, 64, 8, 2)),
    (4, 32): Walks(keys=Blocks(64, 32, 4, 2), queries=Blocks(64, 32, 4, 2)),
    (4, 64): Walks(keys=Blocks(32, 32, 8, 2), queries=Blocks(32, 32, 8, 2)),
    (4, 128): Walks(keys=Blocks(32, 16, 8, 2), queries=Blocks(32, 16, 8, 2)),
    (4, 256): Walks(keys=Blocks(16, 16, 8, 1), queries=Blocks(16, 16, 8, 1)),
}


def attention_with_gradient(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: BoundMask | None = None,
    scale: float,
    softcap: float | None = None,
    bins: Bins | None = None,
    entropy: bool = False,
    lse: bool = False,
    top: int = 0,
    blocks: Walks | None = None,
) -> Told:
    """q B H T E, k B G S E, v B G S Ev, of one dtype on one device; what is told can be differentiated, once."""
    asked = Asked(lse=lse, entropy=entropy, bins=bins, top=top)
    call = _Call(sight_of(mask), scale, softcap, bins, blocks)
    return Told(*_Attention.apply(q, k, v, asked, call))


class _Call(NamedTuple):
    """What forward and backward have in common."""

    sight: Sight
    scale: float
    softcap: float | None
    bins: Bins | None
    blocks: Walks | None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, asked: Asked, call: _Call) -> Told:
        asked_too = asked._replace(lse=True)
        told = forward(q, k, v, call.sight, scale=call.scale, softcap=call.softcap, asked=asked_too)
        ctx.save_for_backward(q, k, v, told.out, told.lse, told.entropy)
        ctx.call = call
        ctx.set_materialize_grads(False)
        if told.threshold is not None:
            ctx.mark_non_differentiable(told.threshold)
        return told if asked.lse else told._replace(lse=None)

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
        if torch.is_grad_enabled():  # as it is only under create_graph=True
            raise BackendError("no-second-gradients")
        q, k, v, out, lse, entropy = ctx.saved_tensors
        if d_out is None:
            d_out = torch.zeros_like(out)
        elif d_out.stride(-1) != 1 or 0 in d_out.stride():
            d_out = d_out.contiguous()  # of a sum, for example, it is one number, told everywhere
        if _may_be_blind(ctx.call.sight):
            d_out = d_out.masked_fill((lse == -torch.inf)[..., None], 0)  # 0 · inf would be NaN
        told = Rows(out, lse, *(None if x is None else x.contiguous() for x in (d_lse, entropy, d_entropy)))
        return (*_gradients(ctx.call, q, k, v, d_out, told, d_sums, ctx.needs_input_grad), None, None)


def _may_be_blind(sight: Sight) -> bool:
    """Whether some query may see nothing, by what is known without looking."""
    return sight.queries is not None or (sight.left or 0) < 0 or sight.offset + (sight.right or 0) < 0


class _Side(NamedTuple):
    """Queries or keys: what a walk loads of them, as wide as a key and as a value; how many; how many share a bin."""

    tensors: tuple[Tensor, Tensor]
    length: int
    bin: int | None


def _gradients(
    call: _Call,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_out: Tensor,
    told: Rows,
    d_sums: Tensor | None,
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Those of q, k and v."""
    if not (q.numel() and k.numel()):
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    known, sight, bins = _known(call, q, k, told, d_sums), call.sight, call.bins if d_sums is not None else None
    queries = _Side((q, d_out), q.shape[2], bins.high if bins else None)
    keys = _Side((k, v), k.shape[2], bins.wide if bins else None)
    blocks = call.blocks or WALKS[q.itemsize, power_of_two(max(q.shape[-1], v.shape[-1]), 32)]
    _walk(prepare_kernel, blocks.queries, known, queries, keys, sight, told)
    d_q = d_k = d_v = None
    if wanted[1] or wanted[2]:
        d_k, d_v = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (k, v))
        _walk(keys_kernel, blocks.keys, known, keys, queries, sight.swapped(), d_k, d_v)
    if wanted[0]:
        d_q = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        _walk(queries_kernel, blocks.queries, known, queries, keys, sight, d_q)
    return d_q, d_k, d_v


def _known(call: _Call, q: Tensor, k: Tensor, told: Rows, d_sums: Tensor | None) -> Known:
    """With room for what is the same along a row."""
    shift, delta, slope = torch.empty((3, *q.shape[:3]), dtype=torch.float32, device=q.device)
    return Known(
        H=q.shape[1],
        T=q.shape[2],
        S=k.shape[2],
        scale=call.scale * LOG2E,
        cap=None if call.softcap is None else call.softcap * LOG2E,
        shift=shift,
        delta=delta,
        slope=None if told.d_entropy is None else slope,
        sums=None if d_sums is None else d_sums.contiguous(),
        R=call.bins.R if call.bins else 0,
        C=call.bins.C if call.bins else 0,
        high=call.bins.high if call.bins else 0,
        wide=call.bins.wide if call.bins else 0,
    )


def _walk(
    kernel: Any, blocks: Blocks, known: Known, own: _Side, passing: _Side, sight: Sight, *rest: Tensor | Rows
) -> None:
    """Start a kernel whose programs own tiles of one side and walk over the other; `sight` is that of the own side."""
    rows, step = min(blocks.rows, power_of_two(own.length)), min(blocks.keys, power_of_two(passing.length))
    if passing.bin is not None:
        step = min(step, max(16, 1 << (passing.bin.bit_length() - 1)))  # then at most one bin ends in a tile
    limits = Limits.of(sight, rows)
    tensors, by_engine = tensors_in_tiles(*((x, rows) for x in own.tensors), *((x, step) for x in passing.tensors))
    E, Ev = (x.shape[-1] for x in own.tensors)
    constants: dict[str, Any] = {"E": E, "EV": Ev, "BLOCK_E": power_of_two(E), "BLOCK_EV": power_of_two(Ev)}
    constants |= {"OWN": rows, "PASSING": step, "TMA": by_engine, "SPREAD": _spread(passing.bin, step)}
    constants |= parts_of_walk(limits, passing.length % step == 0)
    constants["SERVED"] = known.H // min(side.tensors[0].shape[1] for side in (own, passing))
    programs = own.tensors[0].shape[:2].numel() * -(-own.length // rows)
    warps = blocks.warps if rows == blocks.rows else min(4, blocks.warps)
    blocks = Blocks(rows, step, warps, blocks.stages)
    launch(kernel, programs, blocks, own.tensors[0], known, *tensors, limits, *rest, **constants)


def _spread(bin: int | None, step: int) -> str:
    """How many bins a tile of `step` may touch, in the kernels' words; none without a map.

    >>> _spread(None, 64), _spread(128, 64), _spread(100, 64), _spread(10, 16)
    ('', 'one', 'two', 'any')
    """
    if bin is None:
        return ""
    return "one" if bin % step == 0 else "two" if bin > step else "any"
