"""Multi-head and grouped-query attention in PyTorch: the counterpart of `reference.heads`."""

from torch import Tensor

from regard.axes import head_width
from regard.functional.attention import MaskLike, scaled_dot_product_attention
from regard.layer_rules import Projections


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
