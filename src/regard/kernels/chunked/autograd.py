"""The chunked kernel as an autograd function, with gradients computed one block of rows at a time."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.attention_call import AttentionCall
from regard.errors import BackendError
from regard.kernels.chunked.forward import ROWS, forward
from regard.kernels.chunked.scores import Slab, slabs
from regard.kernels.chunked.workers import run_all
from regard.records import Statistics


def backward(call: AttentionCall, out: Tensor, lse: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, from the results of the forward and the gradient of the output."""
    q, k, v = call.q, call.k, call.v
    H, G = q.shape[1], k.shape[1]
    exact = lse.dtype
    d_q = torch.zeros(q.shape, dtype=exact, device=q.device)
    # One part per query head; heads that share a key/value head are summed below.
    d_k = torch.zeros((q.shape[0], H, *k.shape[2:]), dtype=exact, device=q.device)
    d_v = torch.zeros((q.shape[0], H, *v.shape[2:]), dtype=exact, device=q.device)
    grad, out = grad.to(exact), out.to(exact)
    delta = (grad * out).sum(-1)
    if q.shape[2] and k.shape[2] and q.shape[0] * H:
        pieces = slabs(call)

        def work(piece: tuple[tuple[int, ...], Slab]) -> None:
            at, slab = piece
            _backward_slab(slab, grad[at], delta[at], lse[at], call.scale, d_q[at], d_k[at], d_v[at])

        run_all(work, pieces)
    if G != H:
        d_k, d_v = (x.unflatten(1, (G, H // G)).sum(2) for x in (d_k, d_v))
    return d_q.to(q.dtype), d_k.to(k.dtype), d_v.to(v.dtype)


def _backward_slab(
    slab: Slab, grad: Tensor, delta: Tensor, lse: Tensor, scale: float, d_q: Tensor, d_k: Tensor, d_v: Tensor
) -> None:
    for rows, low, high in slab.blocks(ROWS):
        scores = slab.scores(rows, low, high)
        shift = lse[..., rows, None]
        # A fully masked row, or one with scores that are not finite, has no weights and passes no gradient.
        undefined = ~shift.isfinite()
        weights = (scores - shift.masked_fill(undefined, 0)).exp_().masked_fill_(undefined, 0)
        d_v[..., low:high, :] += weights.mT @ grad[..., rows, :]
        d_scores = grad[..., rows, :] @ slab.v[..., low:high, :].mT
        d_scores = weights.mul_(d_scores.sub_(delta[..., rows, None].masked_fill(undefined, 0)))
        if slab.softcap is not None:
            # tanh'(x) = 1 − tanh²(x), and the capped score is softcap · tanh: recomputed without bias and mask.
            plain = Slab(slab.q, slab.k, slab.v, None, None, slab.softcap).scores(rows, low, high)
            d_scores.mul_(1 - (plain / slab.softcap) ** 2)
        d_q[..., rows, :] = (d_scores @ slab.k[..., low:high, :]) * scale
        d_k[..., low:high, :] += d_scores.mT @ slab.q[..., rows, :]  # q is scaled already


def attention(call: AttentionCall) -> tuple[Tensor, Statistics]:
    """Output B H T Ev, differentiable in q, k and v, and the statistics in `see`, which are not differentiable."""
    found: list[Statistics] = []
    return _Attention.apply(call.q, call.k, call.v, call, found), found[0]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, call: AttentionCall, found: list[Statistics]) -> Tensor:
        out, lse, statistics = forward(replace(call, q=q, k=k, v=v))
        found.append(statistics)
        # The Record gets the LSE itself; a caller that changes it there must not change it here.
        ctx.save_for_backward(q, k, v, out, lse.clone())
        # The arrays of the call are saved above and nowhere else.
        ctx.options = {"scale": call.scale, "bound": call.bound, "bias": call.bias, "softcap": call.softcap}
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # only under create_graph=True
            raise BackendError("no-second-gradients")
        q, k, v, out, lse = ctx.saved_tensors
        return (*backward(AttentionCall(q, k, v, **ctx.options), out, lse, grad), None, None)
