"""Multi-head and grouped-query attention: project, split, attend per head, merge, project. With backward passes.

    MultiHead(Q, K, V) = Concat(head₁ … head_H) W_o,  head_i = Attention(Q W_qⁱ, K W_kⁱ, V W_vⁱ)
                                                                    Vaswani et al. 2017, section 3.2.2
Grouped-query attention (Ainslie et al. 2023) is the same with fewer key/value heads.
"""

from typing import NamedTuple

import numpy as np

from regard.axes import head_width
from regard.layer_rules import Projections
from regard.reference.attention import (
    MaskLike,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    sum_to_shape,
)
from regard.reference.inputs import array_likes


class MultiHeadGradients(NamedTuple):
    """The gradients of the three inputs and of the weights, under their names."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    projections: Projections


@array_likes
def split_heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    """(…, T, D) to (…, H, T, E): head h gets the columns h·E … (h+1)·E.

    >>> split_heads(np.arange(8.0).reshape(1, 2, 4), 2)[0, 1].tolist()
    [[2.0, 3.0], [6.0, 7.0]]
    """
    E = head_width(x.shape[-1], n_heads)
    return x.reshape(*x.shape[:-1], n_heads, E).swapaxes(-3, -2)


@array_likes
def merge_heads(x: np.ndarray) -> np.ndarray:
    """(…, H, T, E) to (…, T, H·E): the inverse of `split_heads`."""
    *lead, H, T, E = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, T, H * E)


@array_likes
def multi_head_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    projections: Projections,
    n_heads: int,
    n_kv_heads: int | None = None,
    mask: MaskLike = None,
    bias: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Output (…, T, D) and weights (…, H, T, S) for q (…, T, D), k and v (…, S, D).

    Three tokens of width 4 attend to each other, with two heads:

    >>> x = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    >>> W_q, W_k, W_v, W_o = np.random.default_rng(0).standard_normal((4, 4, 4))
    >>> output, weights = multi_head_attention(x, x, x, Projections(W_q, W_k, W_v, W_o), n_heads=2)
    >>> output.shape, weights.shape
    ((3, 4), (2, 3, 3))

    By hand: each head has its own columns; the outputs of the heads are concatenated and multiplied by W_o.

    >>> def head(own):
    ...     return scaled_dot_product_attention(x @ W_q[:, own], x @ W_k[:, own], x @ W_v[:, own])[0]
    >>> np.allclose(output, np.concatenate([head([0, 1]), head([2, 3])], axis=-1) @ W_o)
    True

    PyTorch stores W_q, W_k and W_v in one matrix, and all of them transposed:

    >>> import torch
    >>> theirs = torch.nn.MultiheadAttention(4, num_heads=2, bias=False, dtype=torch.float64)
    >>> W = {"in_proj_weight": np.concatenate([W_q, W_k, W_v], axis=1).T, "out_proj.weight": W_o.T}
    >>> loaded = theirs.load_state_dict({name: torch.tensor(matrix) for name, matrix in W.items()})
    >>> np.allclose(output, theirs(*[torch.tensor(x)] * 3)[0].detach())
    True
    """
    if q.ndim == 2:  # one sample: add a batch axis, or heads would count as samples
        output, weights = multi_head_attention(q[None], k[None], v[None], projections, n_heads, n_kv_heads, mask, bias)
        return output[0], weights[0]
    heads = _project_and_split(q, k, v, projections, n_heads, n_kv_heads)
    attended, weights = scaled_dot_product_attention(*heads, mask=mask, bias=bias)
    return linear(merge_heads(attended), projections.W_o, projections.b_o), weights


@array_likes
def multi_head_attention_backward(
    grad_output: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    projections: Projections,
    n_heads: int,
    n_kv_heads: int | None = None,
    mask: MaskLike = None,
    bias: np.ndarray | None = None,
) -> MultiHeadGradients:
    """The gradients of q, k, v and of every projection, given the gradient of the output."""
    p = projections
    if q.ndim == 2:
        batched = multi_head_attention_backward(
            grad_output[None], q[None], k[None], v[None], p, n_heads, n_kv_heads, mask, bias
        )
        return MultiHeadGradients(batched.q[0], batched.k[0], batched.v[0], batched.projections)
    heads = _project_and_split(q, k, v, p, n_heads, n_kv_heads)
    attended, _ = scaled_dot_product_attention(*heads, mask=mask, bias=bias)
    merged = merge_heads(attended)
    d_merged, d_W_o, d_b_o = linear_backward(grad_output, merged, p.W_o, p.b_o)
    d_attended = split_heads(d_merged, n_heads)
    d_heads = scaled_dot_product_attention_backward(d_attended, *heads, mask=mask, bias=bias)
    d_q, d_W_q, d_b_q = linear_backward(merge_heads(d_heads.q), q, p.W_q, p.b_q)
    d_k, d_W_k, d_b_k = linear_backward(merge_heads(d_heads.k), k, p.W_k, p.b_k)
    d_v, d_W_v, d_b_v = linear_backward(merge_heads(d_heads.v), v, p.W_v, p.b_v)
    return MultiHeadGradients(d_q, d_k, d_v, Projections(d_W_q, d_W_k, d_W_v, d_W_o, d_b_q, d_b_k, d_b_v, d_b_o))


@array_likes
def linear(x: np.ndarray, W: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """x W + b. `nn.Linear` stores the transpose of this W."""
    return x @ W if b is None else x @ W + b


def linear_backward(
    grad_output: np.ndarray, x: np.ndarray, W: np.ndarray, b: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The gradients of x, W and b."""
    rows, d_rows = x.reshape(-1, x.shape[-1]), grad_output.reshape(-1, grad_output.shape[-1])
    d_b = None if b is None else sum_to_shape(grad_output, b.shape)
    return grad_output @ W.T, rows.T @ d_rows, d_b


def _project_and_split(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, p: Projections, n_heads: int, n_kv_heads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    return (
        split_heads(linear(q, p.W_q, p.b_q), n_heads),
        split_heads(linear(k, p.W_k, p.b_k), n_kv_heads),
        split_heads(linear(v, p.W_v, p.b_v), n_kv_heads),
    )
