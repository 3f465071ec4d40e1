"""MultiHeadAttention: project, split into heads, attend, merge, project. Self- or cross-, grouped, cached.

The module holds weights. Mask, positions, cache and attention function are arguments of `forward`.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.config import AttentionStyle
from regard.config.transformer import check_groups, check_head_count
from regard.dispatch import attend_in_model
from regard.errors import ShapeError
from regard.functional import merge_heads, split_heads
from regard.layers.cache import NO_CACHE, KeysAndValues, LayerCache
from regard.layers.feed_forward import Linear
from regard.masks import Mask
from regard.records import Attend, Kind

Rotate = Callable[[Tensor], Tensor]
"""Applies rotary positions to q or k."""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head₁ … head_H) W_o (Vaswani et al. 2017, section 3.2.2).

    n_kv_heads    fewer heads for keys and values: each serves a group of neighbouring query heads
    d_head        the width of a head; default d_model / n_heads
    bias          of the projections of q, k and v; `output_bias` is that of o_proj, default the same
    norm          builds the norm of each head's queries and keys, given their width; None for none
    name, kind    name and kind of a Record of this attention

    >>> import torch
    >>> MultiHeadAttention(16, n_heads=4, n_kv_heads=2)(torch.zeros(2, 5, 16), mask=Mask.causal()).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        bias: bool = True,
        output_bias: bool | None = None,
        norm: Callable[[int], nn.Module] | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        dropout: float = 0.0,
        name: str = "attention",
        kind: Kind = "self",
    ) -> None:
        super().__init__()
        if d_head is None:
            check_head_count(d_model, n_heads)
            d_head = d_model // n_heads
        check_counts(d_model=(d_model, 1), n_heads=(n_heads, 1), d_head=(d_head, 1))
        AttentionStyle(scale=scale, softcap=softcap, dropout=dropout)  # raises for invalid values
        self.n_heads = n_heads
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        check_groups(self.n_heads, self.n_kv_heads)
        self.scale, self.softcap, self.dropout = scale, softcap, dropout
        self.name, self.kind = name, kind
        self.q_proj = Linear(d_model, self.n_heads * d_head, bias)
        self.k_proj = Linear(d_model, self.n_kv_heads * d_head, bias)
        self.v_proj = Linear(d_model, self.n_kv_heads * d_head, bias)
        self.o_proj = Linear(self.n_heads * d_head, d_model, bias if output_bias is None else output_bias)
        self.q_norm = None if norm is None else norm(d_head)
        self.k_norm = None if norm is None else norm(d_head)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysAndValues | None = None,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: LayerCache = NO_CACHE,
        attend: Attend = attend_in_model,
    ) -> Tensor:
        """x (B, T, D) attends to `memory`, or to itself; the result is (B, T, D).

        memory   (B, S, D), or the keys and values computed from it
        rotate   applies rotary positions to q and k
        cache    cached keys and values; those of x are appended
        """
        if x.ndim != 3 or x.shape[-1] != self.q_proj.in_features:
            raise ShapeError("vectors-shape", D=self.q_proj.in_features, found=tuple(x.shape))
        if memory is None:
            projected, k, v = self._projections(x)
            k, v = cache.update(*self._keys_and_values(k, v, rotate))  # B G S E
        else:
            projected = self.q_proj(x)
            k, v = memory if isinstance(memory, tuple) else cache.update(*self.keys_and_values(memory, rotate))
        q = split_heads(projected, self.n_heads)  # B H T E
        q = q if self.q_norm is None else self.q_norm(q)
        q = q if rotate is None else rotate(q)
        dropout = self.dropout if self.training else 0.0
        is_cross = self.kind == "self" and memory is not None and memory is not x
        out = attend(
            q,
            k,
            v,
            name=self.name,
            kind="cross" if is_cross else self.kind,
            mask=mask,
            bias=bias,
            scale=self.scale,
            softcap=self.softcap,
            dropout=dropout,
        )
        return self.o_proj(merge_heads(out))

    def keys_and_values(self, x: Tensor, rotate: Rotate | None = None) -> KeysAndValues:
        """k and v of x, each B G S E."""
        return self._keys_and_values(self.k_proj(x), self.v_proj(x), rotate)

    def _keys_and_values(self, k: Tensor, v: Tensor, rotate: Rotate | None) -> KeysAndValues:
        """Projected keys and values split into heads, the keys normed and rotated."""
        k = split_heads(k, self.n_kv_heads)
        k = k if self.k_norm is None else self.k_norm(k)
        return (k if rotate is None else rotate(k)), split_heads(v, self.n_kv_heads)

    def _projections(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x W_q, x W_k, x W_v.

        In training on a GPU by one wide product: it is faster than three, and the gradient of x is one product instead
        of a sum of three (docs/log.md). In generation reading the weights dominates, so they are not concatenated.
        """
        parts = (self.q_proj, self.k_proj, self.v_proj)
        if not (x.is_cuda and torch.is_grad_enabled()):
            return self.q_proj(x), self.k_proj(x), self.v_proj(x)
        biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
        weights: list[Tensor] = [part.weight for part in parts]
        q, k, v = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None).split(
            [len(weight) for weight in weights], -1
        )
        return q, k, v
