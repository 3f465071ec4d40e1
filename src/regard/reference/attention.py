"""Softmax, scaled dot-product attention and multi-head attention: the definitions in NumPy, with backward by hand.

    Attention(Q, K, V) = softmax(Q Kᵀ / √E) V                      Vaswani et al. 2017, section 3.2.1

    MultiHead(Q, K, V) = Concat(head₁ … head_H) W_o,  head_i = Attention(Q W_qⁱ, K W_kⁱ, V W_vⁱ)       section 3.2.2

Grouped-query attention (Ainslie et al. 2023) is the same with fewer key/value heads. Every backend must agree with this
file, edge cases included:

- a fully masked query gets zeros;
- a masked key or value never affects a query, even if it is NaN or Inf;
- a query that is NaN or Inf, or sees a key or value that is, gets a row of NaN.

It builds the whole T × S matrix on purpose: it is the definition, not a fast implementation.
"""

from typing import NamedTuple

import numpy as np

from regard.axes import Sizes, attention_sizes, check_bias, head_width
from regard.layer_checks import Projections
from regard.masks import Mask
from regard.reference.inputs import array_likes


def computing_dtype(x: np.ndarray) -> np.dtype:
    """The dtype to compute in: float32 for half precision, float64 for integers, else its own."""
    if x.dtype == np.float16:
        return np.dtype(np.float32)
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


@array_likes
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """exp(x) divided by its sum along `axis`, after subtracting the maximum so that nothing overflows.

    Where everything along `axis` is -inf the result is 0, not NaN.

    >>> softmax(np.array([1.0, 0.0, 1.0]) / np.sqrt(2)).round(5)
    array([0.40111, 0.19778, 0.40111])
    >>> softmax(np.array([-np.inf, -np.inf]))
    array([0., 0.])
    """
    x = np.asarray(x)
    if x.shape[axis] == 0:
        return x.astype(x.dtype if x.dtype.kind == "f" else np.float64)
    scores = x.astype(computing_dtype(x))
    highest = scores.max(axis=axis, keepdims=True)
    # inf - inf is NaN, as it should be for an infinite score; -max - max is -inf, and exp of it is 0.
    with np.errstate(invalid="ignore", over="ignore"):
        exponentials = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    total = exponentials.sum(axis=axis, keepdims=True)
    weights = exponentials / np.where(total == 0, 1, total)
    return weights.astype(x.dtype if x.dtype.kind == "f" else np.float64)


@array_likes
def log_sum_exp(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The logarithm of the sum of exponentials along `axis`; -inf for an empty axis.

    >>> float(log_sum_exp(np.array([0.0, 0.0])).round(4))
    0.6931
    """
    x = np.asarray(x)
    if x.shape[axis] == 0:
        return np.full(np.delete(x.shape, axis), -np.inf, dtype=computing_dtype(x))
    scores = x.astype(computing_dtype(x))
    highest = scores.max(axis=axis, keepdims=True)
    shift = np.where(highest == -np.inf, 0, highest)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total = np.exp(scores - shift).sum(axis=axis, keepdims=True)
        return np.squeeze(np.log(total) + shift, axis=axis)


MaskLike = Mask | np.ndarray | None


class Gradients(NamedTuple):
    """The gradients of the loss with respect to each input. `bias` is None if no bias was given."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    bias: np.ndarray | None = None


@array_likes
def scaled_dot_product_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: MaskLike = None,
    bias: np.ndarray | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Attention and its weights: (…, T, Ev) in the dtype of q, and (…, T, S), float32 for half precision.

    q (…, T, E), k (…, S, E), v (…, S, Ev). The order is: scale, softcap, bias, mask, softmax. From four axes up
    k and v may have fewer heads than q; each then serves a group of neighbouring query heads.

    >>> Q, K = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> output, weights = scaled_dot_product_attention(Q, K, np.array([[10.0, 0.0], [0.0, 20.0], [30.0, 0.0]]))
    >>> weights.round(5), output.round(4)
    (array([[0.40111, 0.19778, 0.40111]]), array([[16.0445,  3.9555]]))
    """
    scores = attention_scores(q, k, mask, bias, scale, softcap)
    weights = softmax(scores)
    return weighted_sum(weights, q, v, mask), weights


@array_likes
def attention_scores(
    q: np.ndarray,
    k: np.ndarray,
    mask: MaskLike = None,
    bias: np.ndarray | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> np.ndarray:
    """The input of softmax, (…, T, S): -inf where masked; a NaN row for a query that sees NaN or Inf."""
    sizes = attention_sizes(q.shape, k.shape, k.shape)
    if bias is not None:
        check_bias(bias.shape, sizes)
    visible = _visible(mask, sizes)
    keys = _repeat_kv_heads(k, sizes)
    nonfinite_keys = ~np.isfinite(keys).all(-1)  # … S
    nonfinite_queries = ~np.isfinite(q).all(-1)  # … T

    exact = computing_dtype(q)
    # C order: BLAS rounding depends on the memory layout, which must not depend on masked values.
    q_clean = np.where(nonfinite_queries[..., None], 0, q).astype(exact, order="C")
    k_clean = np.where(nonfinite_keys[..., None], 0, keys).astype(exact, order="C")
    with np.errstate(over="ignore", invalid="ignore"):
        scores = (q_clean * _scale(scale, sizes, exact)) @ k_clean.swapaxes(-1, -2)  # … T S
        if softcap is not None:
            scores = softcap * np.tanh(scores / softcap)
        if bias is not None:
            scores = scores + bias
    scores = np.where(visible, scores, -np.inf).astype(exact)
    nonfinite_rows = (visible & nonfinite_keys[..., None, :]).any(-1) | (nonfinite_queries & visible.any(-1))
    return np.where(nonfinite_rows[..., None], np.nan, scores)


def weighted_sum(weights: np.ndarray, q: np.ndarray, v: np.ndarray, mask: MaskLike = None) -> np.ndarray:
    """The weighted sum of the values, (…, T, Ev), in the dtype of q; float64 for integers."""
    sizes = attention_sizes(q.shape, (*v.shape[:-1], q.shape[-1]), v.shape)
    values = _repeat_kv_heads(v, sizes)
    nonfinite_values = ~np.isfinite(values).all(-1)  # … S
    with np.errstate(over="ignore", invalid="ignore"):
        output = weights @ np.where(nonfinite_values[..., None], 0, values).astype(weights.dtype, order="C")  # … T Ev
    nonfinite_rows = (_visible(mask, sizes) & nonfinite_values[..., None, :]).any(-1)
    with np.errstate(over="ignore"):
        output = np.where(nonfinite_rows[..., None], np.nan, output)
        return output.astype(q.dtype if q.dtype.kind == "f" else output.dtype)


@array_likes
def scaled_dot_product_attention_backward(
    grad_output: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: MaskLike = None,
    bias: np.ndarray | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Gradients:
    """The gradients of q, k, v and bias, given the gradient of the output.

    With P the weights and S the scores: dV = Pᵀ dO, dP = dO Vᵀ, dS = P ∘ (dP − rowsum(P ∘ dP)), dQ = scale · dS K,
    dK = scale · dSᵀ Q. Fully masked queries and NaN rows have zero gradient.
    """
    sizes = attention_sizes(q.shape, k.shape, v.shape)
    scores = attention_scores(q, k, mask, bias, scale, softcap)
    output = weighted_sum(softmax(scores), q, v, mask)
    finite_rows = np.isfinite(output).all(-1, keepdims=True)  # … T 1
    weights = softmax(np.where(finite_rows, scores, -np.inf))
    exact = weights.dtype
    factor = _scale(scale, sizes, exact)
    queries, keys, values = (_finite(x).astype(exact) for x in (q, k, v))
    keys, values = _repeat_kv_heads(keys, sizes), _repeat_kv_heads(values, sizes)
    d_output = np.where(finite_rows, grad_output, 0).astype(exact)

    d_values = weights.swapaxes(-1, -2) @ d_output
    with np.errstate(over="ignore", invalid="ignore"):
        d_weights = np.where(_visible(mask, sizes), d_output @ values.swapaxes(-1, -2), 0)  # masked: no gradient
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True))
    d_bias = None if bias is None else sum_to_shape(d_scores, bias.shape).astype(bias.dtype)
    if softcap is not None:
        before = np.where(finite_rows, (queries * factor) @ keys.swapaxes(-1, -2), 0)
        d_scores = d_scores * (1 - np.tanh(before / softcap) ** 2)
    d_queries = factor * d_scores @ keys
    d_keys = factor * d_scores.swapaxes(-1, -2) @ queries
    return Gradients(
        q=d_queries.astype(q.dtype),
        k=_sum_head_groups(d_keys, sizes).astype(k.dtype),
        v=_sum_head_groups(d_values, sizes).astype(v.dtype),
        bias=d_bias,
    )


def sum_to_shape(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo broadcasting: the sum of `x` over the axes along which an array of `shape` was repeated."""
    extra = x.ndim - len(shape)
    repeated = [axis + extra for axis, size in enumerate(shape) if size == 1 and x.shape[axis + extra] != 1]
    return x.sum(axis=(*range(extra), *repeated), keepdims=True).reshape(shape)


def _scale(scale: float | None, sizes: Sizes, dtype: np.dtype) -> np.ndarray:
    return np.asarray(1 / np.sqrt(sizes.E) if scale is None else scale, dtype=dtype)


def _visible(mask: MaskLike, sizes: Sizes) -> np.ndarray:
    """The mask as the full boolean matrix, True = visible."""
    if mask is None:
        return np.ones(sizes.scores, dtype=bool)
    if sizes.T == 0 or sizes.S == 0:
        Mask.of(mask).bind(sizes.lead, sizes.T, sizes.S)  # raises for a mask that does not fit
        return np.ones(sizes.scores, dtype=bool)
    visible = Mask.of(mask).bind(sizes.lead, sizes.T, sizes.S).block(slice(0, sizes.T), slice(0, sizes.S))
    shape = sizes.scores
    return np.broadcast_to(visible, (sizes.B, sizes.H, sizes.T, sizes.S)).reshape(shape)


def _repeat_kv_heads(x: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Repeat each key/value head for the query heads of its group."""
    return x if sizes.G == sizes.H else np.repeat(x, sizes.H // sizes.G, axis=-3)


def _sum_head_groups(x: np.ndarray, sizes: Sizes) -> np.ndarray:
    """The transpose of `_repeat_kv_heads`: the sum over the query heads of each group."""
    if sizes.G == sizes.H:
        return x
    grouped = x.reshape(*x.shape[:-3], sizes.G, sizes.H // sizes.G, *x.shape[-2:])
    return grouped.sum(axis=-3)


def _finite(x: np.ndarray) -> np.ndarray:
    """Rows with NaN or Inf set to zero: queries that see them have no gradient, all others do not see them."""
    return np.where(np.isfinite(x).all(-1, keepdims=True), x, 0)


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
