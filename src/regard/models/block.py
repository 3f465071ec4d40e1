"""Block: one layer of a stack. Attention to itself, attention to the encoder, feed-forward; each in a residual."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.dispatch import attend_within
from regard.errors import ArgumentError
from regard.layers.attention import Turn
from regard.layers.cache import UNCACHED, KeysAndValues, LayerCache
from regard.masks import Mask
from regard.models.parts import attention_of, feed_forward_of, norm_of
from regard.records import Attend, Kind


class Block(nn.Module):
    """x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm), for each f of self-attention, cross-attention, FFN.

    An encoder's block has no cross-attention; neither has a decoder's where there is no encoder.

    >>> import torch
    >>> block = Block(TransformerConfig.gpt2(d_model=8, n_heads=2, d_ff=16), kind="decoder")
    >>> block(torch.zeros(1, 3, 8), mask=Mask.causal()).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: TransformerConfig, *, kind: Kind = "self", cross: bool = False) -> None:
        super().__init__()
        self.pre_norm = config.norm.place == "pre"
        self.self_attention = attention_of(config, "self_attention", kind)
        self.self_attention_norm = norm_of(config)
        self.cross_attention = attention_of(config, "cross_attention", "cross") if cross else None
        self.cross_attention_norm = norm_of(config) if cross else None
        self.feed_forward = feed_forward_of(config)
        self.feed_forward_norm = norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeysAndValues | None = None,
        *,
        mask: Mask | Tensor | None = None,
        memory_mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        turn: Turn | None = None,
        cache: LayerCache = UNCACHED,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D); `memory` (B, S, D) is what the encoder made of the source, or the keys and values of that."""
        if (memory is None) != (self.cross_attention is None):
            raise ArgumentError("memory-missing" if memory is None else "memory-unneeded")
        look = partial(self.self_attention, mask=mask, bias=bias, turn=turn, cache=cache, attend=attend)
        x = self._residual(x, self.self_attention_norm, look)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            look = partial(self.cross_attention, memory=memory, mask=memory_mask, attend=attend)
            x = self._residual(x, self.cross_attention_norm, look)
        return self._residual(x, self.feed_forward_norm, self.feed_forward)

    def _residual(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return x + self._dropped(part(norm(x)))
        return norm(x + self._dropped(part(x)))

    def _dropped(self, x: Tensor) -> Tensor:
        return self.dropout(x) if self.training else x  # a module that does nothing still costs a call
