import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        B, T, D = x.shape
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        bias = torch.cat([self.W_q.bias, self.W_k.bias, self.W_v.bias])
        qkv = F.linear(x, weight, bias).reshape(B, T, 3, self.n_heads, self.d_k).permute(2, 0, 3, 1, 4)
        keep = None if mask is None else (mask != 0)[:, None]
        out = F.scaled_dot_product_attention(*qkv, attn_mask=keep)
        return self.W_o(out.permute(0, 2, 1, 3).reshape(B, T, D))
