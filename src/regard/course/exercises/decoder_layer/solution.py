import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
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
    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(torch.relu(self.linear1(x)))

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        T = x.shape[1]
        causal = torch.ones(T, T).tril()
        if memory_mask is not None:
            memory_mask = memory_mask[:, None, None, :]  # (B, 1, 1, S): hides padded keys of the memory
        looked_back, _ = self.self_attention(x, x, causal)
        x = self.norm1(x + looked_back)
        looked_across, weights = self.cross_attention(x, memory, memory_mask)
        x = self.norm2(x + looked_across)
        x = self.norm3(x + self.feed_forward(x))
        return x, weights
