import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, keys, values, hidden=None):
        """One query (B, D); keys and values (B, S, D), already projected."""
        q = self.W_q(query).unflatten(-1, (self.n_heads, -1))
        k, v = keys.unflatten(-1, (self.n_heads, -1)), values.unflatten(-1, (self.n_heads, -1))
        scores = torch.einsum("bhe,bshe->bhs", q, k) / q.shape[-1] ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None], float("-inf"))
        weights = scores.softmax(-1)
        return self.W_o(torch.einsum("bhs,bshe->bhe", weights, v).flatten(1)), weights


class DecoderLayer(nn.Module):
    """As in generation: position by position, so that later positions are not visible."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, memory_mask=None):
        own, across = self.self_attention, self.cross_attention
        k, v = own.W_k(x), own.W_v(x)
        mk, mv = across.W_k(memory), across.W_v(memory)
        hidden = None if memory_mask is None else memory_mask == 0
        outs, maps = [], []
        for t in range(x.shape[1]):
            y = self.norm1(x[:, t] + own(x[:, t], k[:, : t + 1], v[:, : t + 1])[0])
            looked, weights = across(y, mk, mv, hidden)
            y = self.norm2(y + looked)
            outs.append(self.norm3(y + self.linear2(torch.relu(self.linear1(y)))))
            maps.append(weights)
        return torch.stack(outs, 1), torch.stack(maps, 2)
