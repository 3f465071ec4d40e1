"""The backends for torch tensors, in order of preference: sdpa, triton, chunked, eager."""

from dataclasses import replace
from math import nan, prod

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.dispatch.backend import YES, Backend, Support
from regard.functional.attention import attention_scores, attention_weights, computing_dtype, log_sum_exp, weighted_sum
from regard.functional.fused import sdpa
from regard.functional.statistics import pooled_map, statistics_of
from regard.kernels import chunked
from regard.kernels.triton.support import refusal, scratch_for
from regard.masks import Mask
from regard.masks.padding import Padding, without_rows
from regard.masks.rules import Dense
from regard.memory import free_gpu_bytes, require_bytes
from regard.records import See, Statistics


def _sdpa_answer(call: AttentionCall) -> Support:
    if call.see is not None or call.softcap is not None:
        return Support(False, "no-softcap" if call.see is None else "no-statistics", lambda: {"backend": _next(call)})
    if call.dropout:
        return Support(True, "whole-matrix-dropout")
    if call.bias is not None and call.bias.requires_grad:
        return Support(True, "whole-matrix-bias")
    return YES


def _next(call: AttentionCall) -> str:
    """The first of the other backends that can run the call; the last one can run any."""
    return next(one.name for one in BACKENDS[1:] if one.answer(call).yes)


def _sdpa(call: AttentionCall) -> tuple[Tensor, Statistics]:
    if _sdpa_answer(call) is not YES and not torch.compiler.is_compiling():
        _require_memory(call, "matrix-too-large")
    out = sdpa(call.q, call.k, call.v, mask=call.bound, bias=call.bias, scale=call.scale, dropout=call.dropout)
    return out, Statistics()


def _triton_answer(call: AttentionCall) -> Support:
    reason = refusal(call)
    return YES if reason is None else Support(False, *reason)


def _triton(call: AttentionCall) -> tuple[Tensor, Statistics]:
    from regard.kernels.triton.attention import attention  # inside the function: it imports Triton

    return attention(call)


def _chunked_answer(call: AttentionCall) -> Support:
    if call.dropout:
        return Support(False, "no-dropout", {"backend": "eager"})
    if call.see is not None and call.see.differentiable and wants_gradient(call.q, call.k, call.v):
        can = "eager" if _triton_answer(call).yes is False else "triton, eager"
        return Support(False, "no-differentiable-statistics", {"backends": can})
    if call.bias is not None and call.bias.requires_grad:
        return Support(False, "no-bias-gradient", {"backend": "eager"})
    if torch.compiler.is_compiling():
        return Support(False, "no-tracing", {"backend": "eager"})
    return YES


def _chunked(call: AttentionCall) -> tuple[Tensor, Statistics]:
    return chunked.attention(call)


def _eager(call: AttentionCall) -> tuple[Tensor, Statistics]:
    sizes = call.sizes
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    if not torch.compiler.is_compiling():
        _require_memory(call, "weights-too-large")
    mask = None
    if call.bound is not None:
        visible = call.bound.block(slice(0, sizes.T), slice(0, sizes.S))
        if isinstance(visible, bool):
            visible = torch.full((), visible, device=call.q.device)
        mask = Mask(Dense(visible.expand(shape)), "eager")
    scores = attention_scores(call.q, call.k, mask, call.bias, call.scale, call.softcap)
    weights = attention_weights(scores)
    found = Statistics()
    if call.see is not None and call.see.differentiable:
        found = _differentiable(scores, weights, call.see, call.padding)
    elif call.see is not None:
        plain = scores.detach()
        found = statistics_of(weights.detach(), log_sum_exp(plain), call.see, plain, call.padding)
    if call.dropout:
        weights = F.dropout(weights, call.dropout)
    return weighted_sum(weights, call.q, call.v, mask), found


def _differentiable(scores: Tensor, weights: Tensor, see: See, padding: Padding | None) -> Statistics:
    """The statistics, with gradients through map, LSE and entropy; a fully masked row passes no gradient.

    H = ln Σ exp x − Σ w x, where x are the scores below their largest: −Σ w ln w has an infinite slope at w = 0.
    """
    if padding is not None:
        scores = without_rows(scores, padding.queries, -torch.inf, axes=1)
        weights = without_rows(weights, padding.queries, 0, axes=1)
    masked = scores == -torch.inf
    fully_masked = masked.all(-1)  # B H T
    not_finite = ~(masked | scores.isfinite()).all(-1)  # these rows are NaN, and pass no gradient to shared keys
    shift = scores.detach().amax(-1) if scores.shape[-1] else scores.new_zeros(fully_masked.shape)
    shift = shift.masked_fill(shift.isinf(), 0)
    below = (scores - shift[..., None]).masked_fill((fully_masked | not_finite)[..., None], 0)
    total = log_sum_exp(below)  # filled only afterwards where fully masked: the slope there would be NaN
    others = replace(see, map=None, entropy=False)
    rest = statistics_of(weights.detach(), total.detach(), others, scores.detach(), padding)
    mean = (weights * below.masked_fill(masked, 0)).sum(-1)
    return rest._replace(
        map=pooled_map(weights, see.map) if see.map else None,
        lse=(total + shift).masked_fill(fully_masked, -torch.inf).masked_fill(not_finite, nan)
        if see.lse or see.qk
        else None,
        entropy=(total - mean).masked_fill(fully_masked, 0).masked_fill(not_finite, nan) if see.entropy else None,
    )


def _require_memory(call: AttentionCall, key: str) -> None:
    """Raise TooLargeError unless scores, weights and a dense mask fit into memory at the same time."""
    shape = (call.sizes.B, call.sizes.H, call.sizes.T, call.sizes.S)
    require_bytes(3 * computing_dtype(call.q).itemsize * prod(shape), key=key, shape=shape, free=free_gpu_bytes(call.q))


def rectangle(call: AttentionCall, lse: Tensor, rows: slice, cols: slice) -> Tensor:
    """Exact weights of rows × cols, by the GPU kernels where they can, else by torch operations."""
    if refusal(replace(call, see=None, dropout=0.0)) is None:
        from regard.kernels.triton import second_pass

        return second_pass.rectangle(call, lse, rows, cols)
    return chunked.rectangle(call, lse, rows, cols)


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether autograd records operations on them."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


BACKENDS = (
    Backend("sdpa", _sdpa_answer, _sdpa),
    Backend("triton", _triton_answer, _triton, scratch_for),
    Backend("chunked", _chunked_answer, _chunked),
    Backend("eager", lambda _: Support(True, "whole-matrix"), _eager),
)
