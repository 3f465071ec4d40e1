"""Scaled dot-product attention in PyTorch, eager: the twin of `reference.attention`, weights and all.

Differentiable by autograd, with the corners of the reference. Rows that end as NaN are kept out of the products,
so that a row nobody uses cannot poison the gradients of its neighbours: NaN times a zero gradient would be NaN.
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from regard.axes import Sizes, attention_sizes, check_bias
from regard.functional.exponentials import computing_dtype
from regard.masks import Mask

MaskLike = Mask | Tensor | None


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskLike = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention and its weights: (…, T, Ev) in the dtype of q, and (…, T, S), float32 for half precision.

    >>> q = k = v = torch.eye(2)
    >>> scaled_dot_product_attention(q, k, v, Mask.causal())[1]
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    weights = attention_weights(attention_scores(q, k, mask, bias, scale, softcap))
    return weighted_sum(weights, q, v, mask), weights


def attention_scores(
    q: Tensor,
    k: Tensor,
    mask: MaskLike = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """The scores that softmax sees, (…, T, S): -inf where a query may not look, NaN rows where it met NaN or Inf."""
    sizes = attention_sizes(q.shape, k.shape, k.shape)
    if bias is not None:
        check_bias(bias.shape, sizes)
    keys = serve_all_heads(k, sizes)
    bad_keys = ~keys.isfinite().all(-1)  # … S
    bad_queries = ~q.isfinite().all(-1)  # … T
    exact = computing_dtype(q)
    factor = 1 / math.sqrt(sizes.E) if scale is None else scale
    clean_q = q.masked_fill(bad_queries[..., None], 0).to(exact) * factor
    clean_k = keys.masked_fill(bad_keys[..., None], 0).to(exact)
    with without_autocast(q):
        scores = clean_q @ clean_k.mT  # … T S, float32 at least, autocast or not
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = (scores + bias).to(exact)
    allowed = allowed_matrix(mask, sizes, q)
    if allowed is None:
        met_bad = bad_keys.any(-1, keepdim=True) | bad_queries
    else:
        scores = scores.masked_fill(~allowed, -torch.inf)
        met_bad = (allowed & bad_keys[..., None, :]).any(-1) | (bad_queries & allowed.any(-1))
    return scores.masked_fill(met_bad[..., None], torch.nan)


def attention_weights(scores: Tensor) -> Tensor:
    """Softmax of the scores; a row with NaN or +inf in it becomes NaN and passes no gradient on."""
    if not scores.shape[-1]:
        return scores
    highest = scores.detach().amax(-1, keepdim=True)  # NaN if any score is
    lost, nothing = ~(highest < torch.inf), highest == -torch.inf
    special = lost | nothing
    # Filling copies T × S numbers, so it is done only where it may be needed: a traced graph cannot look.
    if not torch.compiler.is_compiling() and not special.any():
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores.masked_fill(special, 0), -1)
    return weights.masked_fill(nothing, 0).masked_fill(lost, torch.nan)


def weighted_sum(weights: Tensor, q: Tensor, v: Tensor, mask: MaskLike = None) -> Tensor:
    """The weights' mean of the values, (…, T, Ev), in the dtype of q."""
    sizes = attention_sizes(q.shape, (*v.shape[:-1], q.shape[-1]), v.shape)
    values = serve_all_heads(v, sizes)
    bad_values = ~values.isfinite().all(-1)  # … S
    lost = weights.detach().amax(-1).isnan() if weights.shape[-1] else weights.sum(-1).isnan()  # … T
    clean = values.masked_fill(bad_values[..., None], 0).to(weights.dtype)
    allowed = allowed_matrix(mask, sizes, q)
    here = bad_values[..., None, :]
    met_bad = here.any(-1) if allowed is None else (allowed & here).any(-1)
    # Hidden weights are 0 already; filling them keeps an infinite gradient, from a huge hidden value, from them.
    if allowed is not None and weights.requires_grad:
        weights = weights.masked_fill(~allowed, 0)
    if torch.compiler.is_compiling() or lost.any():
        weights = weights.masked_fill(lost[..., None], 0)
    with without_autocast(q):
        output = weights @ clean  # … T Ev
    return output.masked_fill((lost | met_bad)[..., None], torch.nan).to(q.dtype)


def without_autocast(q: Tensor) -> AbstractContextManager[None]:
    """Where autocast would turn the products into half precision, it is off."""
    return torch.autocast(q.device.type, enabled=False) if autocast_is_on(q) else nullcontext()


def autocast_is_on(q: Tensor) -> bool:
    """Whether autocast is on where q lies; some devices have none."""
    device = q.device.type
    # The two that surely have it are not asked: torch 2.11 cannot trace the question.
    available = device in ("cpu", "cuda") or torch.amp.is_autocast_available(device)
    return available and torch.is_autocast_enabled(device)


def allowed_matrix(mask: MaskLike, sizes: Sizes, like: Tensor) -> Tensor | None:
    """Who may look where, broadcastable to the scores; None for everyone everywhere."""
    if mask is None:
        return None
    bound = Mask.of(mask).bind(sizes.lead, sizes.T, sizes.S, like)
    seen = bound.block(slice(0, sizes.T), slice(0, sizes.S))
    if isinstance(seen, bool):
        return torch.full((), seen, device=like.device).expand(sizes.scores)
    return seen.expand(sizes.B, sizes.H, sizes.T, sizes.S).reshape(sizes.scores)


def serve_all_heads(x: Tensor, sizes: Sizes) -> Tensor:
    """Each key/value head, repeated for the query heads it serves."""
    return x if sizes.G == sizes.H else x.repeat_interleave(sizes.H // sizes.G, dim=-3)
