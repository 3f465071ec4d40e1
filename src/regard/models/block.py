"""Block: one layer of a stack. Attention to itself, attention to the encoder, feed-forward; each in a residual."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from regard.config import TransformerConfig
from regard.dispatch import attend_within
from regard.layers import FeedForward, LayerNorm, MultiHeadAttention, RMSNorm
from regard.layers.attention import Turn
from regard.layers.cache import UNCACHED, LayerCache
from regard.layers.norms import norm_of
from regard.masks import Mask
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
        self.self_attention_norm = wide_norm_of(config)
        self.cross_attention = attention_of(config, "cross_attention", "cross") if cross else None
        self.cross_attention_norm = wide_norm_of(config) if cross else None
        self.feed_forward = FeedForward(
            config.d_model,
            config.d_ff,
            activation=config.activation,
            bias=config.biases.feed_forward,
            dropout=config.dropout,
        )
        self.feed_forward_norm = wide_norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
        memory_mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        turn: Turn | None = None,
        cache: LayerCache = UNCACHED,
        memory_cache: LayerCache = UNCACHED,
        attend: Attend = attend_within,
    ) -> Tensor:
        """x (B, T, D); `memory` (B, S, D) is what the encoder made of the source."""
        look = partial(self.self_attention, mask=mask, bias=bias, turn=turn, cache=cache, attend=attend)
        x = self._residual(x, self.self_attention_norm, look)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            look = partial(self.cross_attention, memory=memory, mask=memory_mask, cache=memory_cache, attend=attend)
            x = self._residual(x, self.cross_attention_norm, look)
        return self._residual(x, self.feed_forward_norm, self.feed_forward)

    def _residual(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return x + self._dropped(part(norm(x)))
        return norm(x + self._dropped(part(x)))

    def _dropped(self, x: Tensor) -> Tensor:
        return self.dropout(x) if self.training else x  # a module that does nothing still costs a call


def attention_of(config: TransformerConfig, name: str, kind: Kind) -> MultiHeadAttention:
    """The attention that a config describes."""
    style = config.attention
    norm = partial(norm_of, config.norm.kind, eps=config.norm.eps, bias=config.biases.norm) if style.qk_norm else None
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_head=config.d_head,
        bias=config.biases.attention,
        output_bias=config.biases.attention_output,
        norm=norm,
        scale=style.scale,
        softcap=style.softcap,
        dropout=style.dropout,
        name=name,
        kind=kind,
    )


def wide_norm_of(config: TransformerConfig) -> LayerNorm | RMSNorm:
    """The norm that a config describes, over the width of the model."""
    return norm_of(config.norm.kind, config.d_model, config.norm.eps, config.biases.norm)
