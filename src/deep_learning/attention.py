"""The attention functions of document 003, in NumPy. Masks are added to the scores: 0 = visible, -inf = masked.

    output, weights = scaled_dot_product_attention(Q, K, V, create_causal_mask(4))

The computation is in `regard.reference`; this module has the names, the mask conversion and the random weights.
"""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from deep_learning.checks import count, floats, last_axis, numpy_array
from deep_learning.masks import from_additive
from regard import reference
from regard.axes import head_width
from regard.errors import ShapeError
from regard.layer_checks import Projections
from regard.masks import Mask
from regard.reference.attention import computing_dtype

__all__ = [
    "MultiHeadAttention",
    "create_causal_mask",
    "create_padding_mask",
    "scaled_dot_product_attention",
]

MaskLike = Mask | ArrayLike | None


def scaled_dot_product_attention(
    Q: ArrayLike, K: ArrayLike, V: ArrayLike, mask: MaskLike = None
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(Q Kᵀ / √d_k) V and its weights, (…, T, d_v) and (…, T, S), in the dtype of the inputs.

    >>> Q, K, V = [[1.0]], [[1.0], [2.0], [0.5]], [[10.0], [20.0], [5.0]]
    >>> output, weights = scaled_dot_product_attention(Q, K, V)
    >>> weights.round(5), output.round(4)
    (array([[0.23122, 0.62853, 0.14024]]), array([[15.5841]]))
    """
    q, k, v = floats(Q=Q, K=K, V=V)
    output, weights = reference.scaled_dot_product_attention(q, k, v, from_additive(mask, q.ndim))
    return output, weights.astype(q.dtype, copy=False)


class MultiHeadAttention:
    """Project, split into heads, attend in each, merge, project; without biases.

    `W_q`, `W_k`, `W_v` and `W_o` are (d_model, d_model), used as x @ W; of the first three, the columns
    h·d_k … (h+1)·d_k belong to head h. They are drawn in this order, Xavier-uniform (±√(3 / d_model)),
    by `numpy.random.default_rng(seed)`. Raises IndivisibleError if num_heads does not divide d_model.

    >>> mha = MultiHeadAttention(d_model=8, num_heads=2, seed=0)
    >>> mha.d_k, mha.forward(np.ones((1, 3, 8)), np.ones((1, 5, 8)), np.ones((1, 5, 8))).shape
    (4, (1, 3, 8))
    """

    def __init__(self, d_model: int, num_heads: int, seed: int | None = None) -> None:
        self.d_model = count("d_model", d_model)
        self.num_heads = count("num_heads", num_heads)
        self.d_k = head_width(self.d_model, self.num_heads, heads_name="num_heads")
        limit = np.sqrt(6 / (self.d_model + self.d_model))
        drawn = np.random.default_rng(seed).uniform(-limit, limit, (4, self.d_model, self.d_model))
        self.W_q, self.W_k, self.W_v, self.W_o = drawn

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """The same as `forward`: `mha(x, x, x)` works as in PyTorch."""
        return self.forward(*arguments, **options)

    @overload
    def forward(
        self,
        q: ArrayLike,
        k: ArrayLike,
        v: ArrayLike,
        mask: MaskLike = ...,
        return_weights: Literal[False] = ...,
    ) -> np.ndarray: ...

    @overload
    def forward(
        self, q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: MaskLike = ..., *, return_weights: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def forward(
        self,
        q: ArrayLike,
        k: ArrayLike,
        v: ArrayLike,
        mask: MaskLike = None,
        return_weights: bool = False,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The output, (B, T, d_model); with `return_weights` also the weights, (B, H, T, S).

        q is (B, T, d_model), k and v are (B, S, d_model); for self-attention all three are the same array.
        """
        queries, keys, values = floats(q=q, k=k, v=v)
        for name, x in (("q", queries), ("k", keys), ("v", values)):
            last_axis(name, x, self.d_model, axes=3)
        dtype, exact = queries.dtype, computing_dtype(queries)
        projections = Projections(*(W.astype(exact) for W in (self.W_q, self.W_k, self.W_v, self.W_o)))
        # Masked positions may hold any value, and are projected before the mask is applied.
        with np.errstate(over="ignore", invalid="ignore"):
            output, weights = reference.multi_head_attention(
                queries.astype(exact),
                keys.astype(exact),
                values.astype(exact),
                projections,
                self.num_heads,
                mask=from_additive(mask, axes=4),
            )
            output, weights = output.astype(dtype, copy=False), weights.astype(dtype, copy=False)
        return (output, weights) if return_weights else output


def create_causal_mask(n: int) -> np.ndarray:
    """(n, n): 0 on and below the diagonal, -inf above; each position sees itself and earlier ones.

    >>> create_causal_mask(3)
    array([[  0., -inf, -inf],
           [  0.,   0., -inf],
           [  0.,   0.,   0.]])
    """
    n = count("n", n, least=0)
    return np.where(Mask.causal().dense(n, n), 0.0, -np.inf)


def create_padding_mask(seq: ArrayLike, pad_token: int = 0) -> np.ndarray:
    """(B, 1, S) for `seq` (B, S): -inf where it is `pad_token`, 0 elsewhere. Plus a causal mask: (B, S, S).

    >>> create_padding_mask([[7, 8, 0]])
    array([[[  0.,   0., -inf]]])
    """
    ids = numpy_array("seq", seq)
    if ids.ndim not in (1, 2):
        raise ShapeError("input-shape", name="seq", wanted="(B, S)", found=ids.shape)
    return np.where(ids == pad_token, -np.inf, 0.0)[..., None, :]
