import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        Q, K, V = self.split(self.W_q(x)), self.split(self.W_k(memory)), self.split(self.W_v(memory))
        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        return self.W_o((weights @ V).transpose(1, 2).flatten(2)), weights

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)


class DecoderLayer(nn.Module):
    """A buffer for the causal mask, dropout that is inactive in eval mode, sub-layers in a list."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("causal", torch.tril(torch.ones(64, 64)).bool(), persistent=False)

    def forward(self, x, memory, memory_mask=None):
        T = x.size(1)
        seen = None if memory_mask is None else memory_mask.unsqueeze(1).unsqueeze(1)
        steps = (
            (self.norm1, lambda x: self.self_attention(x, x, self.causal[:T, :T])[0]),
            (self.norm2, lambda x: self.cross_attention(x, memory, seen)[0]),
            (self.norm3, lambda x: self.linear2(self.linear1(x).relu())),
        )
        for norm, sublayer in steps:
            x = norm(x + self.drop(sublayer(x)))
        return x
