import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x, memory, **options):
        B, T, D = x.shape
        q = self.W_q(x).view(B, T, self.n_heads, -1).transpose(1, 2)
        k = self.W_k(memory).view(B, memory.size(1), self.n_heads, -1).transpose(1, 2)
        v = self.W_v(memory).view(B, memory.size(1), self.n_heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, **options)
        return self.W_o(out.transpose(1, 2).reshape(B, T, D))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, memory, memory_mask=None):
        keep = None if memory_mask is None else memory_mask[:, None, None].bool()
        y = self.norm1(x + self.self_attention(x, x, is_causal=True))
        y = self.norm2(y + self.cross_attention(y, memory, attn_mask=keep))
        return self.norm3(y + self.linear2(F.relu(self.linear1(y))))
