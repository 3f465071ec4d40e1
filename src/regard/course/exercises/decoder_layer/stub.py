import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Given. Do not change its names.

    已经写好：你之前写过它。名字请保持不变。
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # x (B, T, d_model) attends to memory (B, S, d_model); mask fits (B, n_heads, T, S), 0 or False = hidden
        Q, K, V = self.split(self.W_q(x)), self.split(self.W_k(memory)), self.split(self.W_v(memory))
        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        weights = torch.softmax(scores, dim=-1)  # (B, n_heads, T, S)
        return self.W_o((weights @ V).transpose(1, 2).flatten(2)), weights

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)  # (B, n_heads, T, d_k)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, feed-forward, each with LayerNorm(x + Sublayer(x)).

    因果自注意力、交叉注意力、前馈，每个子层都是 LayerNorm(x + Sublayer(x))。
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # x (B, T, d_model), memory (B, S, d_model), memory_mask (B, S), 0 = padding
        # -> (B, T, d_model), weights of the cross-attention (B, n_heads, T, S)
        raise NotImplementedError
