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


class EncoderLayer(nn.Module):
    """Everything in one method, with PyTorch's kernel and norm as functions."""

    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        at = self.attention
        q, k, v = (W(x).reshape(B, T, at.n_heads, -1).permute(0, 2, 1, 3) for W in (at.W_q, at.W_k, at.W_v))
        keep = None if mask is None else mask.bool().reshape(B, 1, 1, T).expand(B, 1, T, T)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=keep).permute(0, 2, 1, 3).reshape(B, T, D)
        x = F.layer_norm(x + self.dropout(at.W_o(mixed)), (D,), self.norm1.weight, self.norm1.bias)
        hidden = F.relu(self.linear1(x))
        return F.layer_norm(x + self.dropout(self.linear2(hidden)), (D,), self.norm2.weight, self.norm2.bias)
