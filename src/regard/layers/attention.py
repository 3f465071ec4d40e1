"""MultiHeadAttention (project, split into heads, attend, merge, project), and the key/value caches of such a layer.

Self- or cross-attention, grouped, cached. The module holds weights. Mask, positions, cache and attention function are
arguments of `forward`. With a cache each token of a text is read once: NoCache stores nothing; GrowingCache grows as
needed; StaticCache has a fixed number of columns at a fixed address, as CUDA graphs require. None handles masks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.arrays import check_counts
from regard.config import AttentionStyle
from regard.config.transformer import check_groups, check_head_count
from regard.dispatch import attend_in_model
from regard.errors import DtypeError, ShapeError
from regard.functional import merge_heads, split_heads
from regard.functional.int8_weight import Int8Weight
from regard.layers.position_wise import Linear
from regard.masks import Mask
from regard.records import Attend, Kind

KeysAndValues = tuple[Tensor, Tensor]
"""k and v, each B G S E."""


class LayerCache(Protocol):
    """`update` stores the newest keys and values and returns all of them."""

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues: ...


class NoCache:
    """Returns the newest keys and values and stores nothing."""

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        return k, v


NO_CACHE = NoCache()


class GrowingCache:
    """All keys and values so far. The capacity doubles when it is full, so that a step copies one column."""

    def __init__(self) -> None:
        self.length = 0
        self._buffers: KeysAndValues | None = None

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        start, stop = self.length, self.length + k.shape[2]
        if self._buffers is not None:
            _check_dtype(self._buffers[0], k)
        all_k, all_v = self._with_capacity(stop, k, v)
        all_k[:, :, start:stop] = k
        all_v[:, :, start:stop] = v
        self.length = stop
        return all_k[:, :, :stop], all_v[:, :, :stop]

    def memory_for_next(self) -> KeysAndValues | None:
        """The memory of all keys and values, at least one column larger, for a caller that writes it and then adds 1
        to `length`; None where nothing was read yet.
        """
        return None if self._buffers is None else self._with_capacity(self.length + 1, *self._buffers)

    def _with_capacity(self, length: int, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._buffers is None or length > self._buffers[0].shape[2]:
            size = max(length, 2 * self.length)
            grown = (k.new_empty(*k.shape[:2], size, k.shape[3]), v.new_empty(*v.shape[:2], size, v.shape[3]))
            if self._buffers is not None:
                for new, old in zip(grown, self._buffers, strict=True):
                    new[:, :, : self.length] = old[:, :, : self.length]
            self._buffers = grown
        return self._buffers

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; rows may repeat."""
        if self._buffers is not None:
            self._buffers = (select_rows(self._buffers[0], rows), select_rows(self._buffers[1], rows))

    def crop(self, length: int) -> None:
        """Drop the columns from `length` on."""
        self.length = length
        if length == 0:
            self._buffers = None  # the next input may have another number of samples


@dataclass(slots=True)
class WritePosition:
    """The columns that the newest keys and values go to, (T,): set once per step, shared by all layers."""

    columns: Tensor


class StaticCache:
    """`max_len` columns, allocated at once. The newest go to the columns of `position`, which the caller sets."""

    def __init__(self, position: WritePosition, max_len: int) -> None:
        self._position, self._max_len = position, max_len
        self._buffers: KeysAndValues | None = None

    def update(self, k: Tensor, v: Tensor) -> KeysAndValues:
        if self._buffers is None or len(self._buffers[0]) != len(k):
            # Zeros: a column not yet written is masked, but a kernel may multiply it by a weight of 0.
            all_k, all_v = (x.new_zeros(*x.shape[:2], self._max_len, x.shape[3]) for x in (k, v))
            self._buffers = (all_k, all_v)
        _check_dtype(self._buffers[0], k)
        for buffer, new in zip(self._buffers, (k, v), strict=True):
            buffer.index_copy_(2, self._position.columns, new)
        return self._buffers

    def select(self, rows: Tensor) -> None:
        """Keep these samples in this order; in the same memory if their number does not change."""
        if self._buffers is not None:
            k, v = self._buffers
            self._buffers = (select_rows_in_place(k, rows), select_rows_in_place(v, rows))


def _check_dtype(there: Tensor, new: Tensor) -> None:
    if there.dtype != new.dtype:
        raise DtypeError("cache-dtype", there=there.dtype, found=new.dtype)


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The rows of x in this order. By `index_select`, not indexing: `watch` tracks it to follow reordered samples."""
    return x.index_select(0, rows)


def select_rows_in_place(x: Tensor, rows: Tensor) -> Tensor:
    """The same, in the memory of x if the number of rows does not change: a captured step reads from there."""
    return x.copy_(select_rows(x, rows)) if len(rows) == len(x) else select_rows(x, rows)


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
        if not (x.is_cuda and torch.is_grad_enabled()) or isinstance(self.q_proj.weight, Int8Weight):
            return self.q_proj(x), self.k_proj(x), self.v_proj(x)
        biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
        weights: list[Tensor] = [part.weight for part in parts]
        q, k, v = F.linear(x, torch.cat(weights), torch.cat(biases) if biases else None).split(
            [len(weight) for weight in weights], -1
        )
        return q, k, v
