"""Softmax, attention with its weights, and multi-head attention in eager PyTorch: `reference.attention` for tensors.

Differentiable by autograd, with the edge cases of the reference. Rows that become NaN are kept out of the products, so
that an unused row cannot make the gradients of other rows NaN: NaN times a zero gradient is NaN.
"""

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from regard.axes import Sizes, attention_sizes, check_bias, head_width
from regard.layer_checks import Projections
from regard.masks import Mask


def computing_dtype(x: Tensor) -> torch.dtype:
    """The dtype to compute in: float32 for half precision, else its own."""
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along `axis`; 0 where everything is -inf, with zero gradients."""
    if not x.is_floating_point():
        x = x.double()
    scores = x.to(computing_dtype(x))
    masked = (scores == -torch.inf).all(dim=axis, keepdim=True)
    weights = torch.softmax(scores.masked_fill(masked, 0), dim=axis).masked_fill(masked, 0)
    return weights.to(x.dtype)


def log_sum_exp(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the sum of exponentials along `axis`; -inf for an empty axis."""
    scores = x.to(computing_dtype(x))
    if scores.shape[axis] == 0:
        return scores.sum(dim=axis) - torch.inf
    return torch.logsumexp(scores, dim=axis)


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
    """The input of softmax, (…, T, S): -inf where masked; a NaN row for a query that sees NaN or Inf."""
    sizes = attention_sizes(q.shape, k.shape, k.shape)
    if bias is not None:
        check_bias(bias.shape, sizes)
    keys = repeat_kv_heads(k, sizes)
    nonfinite_keys = ~keys.isfinite().all(-1)  # … S
    nonfinite_queries = ~q.isfinite().all(-1)  # … T
    exact = computing_dtype(q)
    factor = 1 / math.sqrt(sizes.E) if scale is None else scale
    clean_q = q.masked_fill(nonfinite_queries[..., None], 0).to(exact) * factor
    clean_k = keys.masked_fill(nonfinite_keys[..., None], 0).to(exact)
    with without_autocast(q):
        scores = clean_q @ clean_k.mT  # … T S, float32 at least, autocast or not
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = (scores + bias).to(exact)
    visible = visible_matrix(mask, sizes, q)
    if visible is None:
        nonfinite_rows = nonfinite_keys.any(-1, keepdim=True) | nonfinite_queries
    else:
        scores = scores.masked_fill(~visible, -torch.inf)
        nonfinite_rows = (visible & nonfinite_keys[..., None, :]).any(-1) | (nonfinite_queries & visible.any(-1))
    return scores.masked_fill(nonfinite_rows[..., None], torch.nan)


def attention_weights(scores: Tensor) -> Tensor:
    """Softmax of the scores; a row with NaN or +inf becomes NaN and has no gradient."""
    if not scores.shape[-1]:
        return scores
    highest = scores.detach().amax(-1, keepdim=True)  # NaN if any score is
    nonfinite, masked = ~(highest < torch.inf), highest == -torch.inf
    special = nonfinite | masked
    # Filling copies T × S numbers, so it is done only if needed; a graph cannot check and always fills.
    if not _in_graph(scores) and not special.any():
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores.masked_fill(special, 0), -1)
    return weights.masked_fill(masked, 0).masked_fill(nonfinite, torch.nan)


def weighted_sum(weights: Tensor, q: Tensor, v: Tensor, mask: MaskLike = None) -> Tensor:
    """The weighted sum of the values, (…, T, Ev), in the dtype of q."""
    sizes = attention_sizes(q.shape, (*v.shape[:-1], q.shape[-1]), v.shape)
    values = repeat_kv_heads(v, sizes)
    nonfinite_values = ~values.isfinite().all(-1)  # … S
    nan_rows = weights.detach().amax(-1).isnan() if weights.shape[-1] else weights.sum(-1).isnan()  # … T
    clean = values.masked_fill(nonfinite_values[..., None], 0).to(weights.dtype)
    visible = visible_matrix(mask, sizes, q)
    nonfinite = nonfinite_values[..., None, :]
    nonfinite_rows = nonfinite.any(-1) if visible is None else (visible & nonfinite).any(-1)
    # Masked weights are 0 already; filling also stops an infinite gradient from a huge masked value.
    if visible is not None and weights.requires_grad:
        weights = weights.masked_fill(~visible, 0)
    if _in_graph(weights) or nan_rows.any():
        weights = weights.masked_fill(nan_rows[..., None], 0)
    with without_autocast(q):
        output = weights @ clean  # … T Ev
    return output.masked_fill((nan_rows | nonfinite_rows)[..., None], torch.nan).to(q.dtype)


def _in_graph(x: Tensor) -> bool:
    """Whether these operations become part of a traced graph or a CUDA graph, which must not branch on values."""
    return torch.compiler.is_compiling() or (x.is_cuda and torch.cuda.is_current_stream_capturing())


def without_autocast(q: Tensor) -> AbstractContextManager[None]:
    """A context without autocast, which would compute the products in half precision."""
    return torch.autocast(q.device.type, enabled=False) if autocast_is_on(q) else nullcontext()


def autocast_is_on(q: Tensor) -> bool:
    """Whether autocast is on for the device of q; some devices have none."""
    device = q.device.type
    # No query for the two devices that always have it: torch 2.11 cannot trace `is_autocast_available`.
    available = device in ("cpu", "cuda") or torch.amp.is_autocast_available(device)
    return available and torch.is_autocast_enabled(device)


def autocast(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v in the dtype of autocast, where it is on: PyTorch's own rule, applied before any backend."""
    if not autocast_is_on(q):
        return q, k, v
    dtype = torch.get_autocast_dtype(q.device.type)
    q, k, v = (x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x for x in (q, k, v))
    return q, k, v


def visible_matrix(mask: MaskLike, sizes: Sizes, like: Tensor) -> Tensor | None:
    """The mask as booleans, True = visible, broadcastable to the scores; None if nothing is masked."""
    if mask is None:
        return None
    bound = Mask.of(mask).bind(sizes.lead, sizes.T, sizes.S, like)
    visible = bound.block(slice(0, sizes.T), slice(0, sizes.S))
    if isinstance(visible, bool):
        return torch.full((), visible, device=like.device).expand(sizes.scores)
    return visible.expand(sizes.B, sizes.H, sizes.T, sizes.S).reshape(sizes.scores)


def repeat_kv_heads(x: Tensor, sizes: Sizes) -> Tensor:
    """Repeat each key/value head for the query heads of its group."""
    return x if sizes.G == sizes.H else x.repeat_interleave(sizes.H // sizes.G, dim=-3)


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(…, T, D) to (…, H, T, E): head h gets the columns h·E … (h+1)·E."""
    return x.unflatten(-1, (n_heads, head_width(x.shape[-1], n_heads))).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(…, H, T, E) to (…, T, H·E): the inverse of `split_heads`."""
    return x.transpose(-3, -2).flatten(-2)


def multi_head_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    projections: Projections,
    n_heads: int,
    n_kv_heads: int | None = None,
    mask: MaskLike = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output (…, T, D) and weights (…, H, T, S) for q (…, T, D), k and v (…, S, D)."""
    p = projections
    if q.ndim == 2:  # one sample: add a batch axis, or heads would count as samples
        output, weights = multi_head_attention(q[None], k[None], v[None], p, n_heads, n_kv_heads, mask, bias)
        return output[0], weights[0]
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    attended, weights = scaled_dot_product_attention(
        split_heads(linear(q, p.W_q, p.b_q), n_heads),
        split_heads(linear(k, p.W_k, p.b_k), n_kv_heads),
        split_heads(linear(v, p.W_v, p.b_v), n_kv_heads),
        mask=mask,
        bias=bias,
    )
    return linear(merge_heads(attended), p.W_o, p.b_o), weights


def linear(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """x W + b. `nn.Linear` stores the transpose of this W."""
    return x @ W if b is None else x @ W + b
