import torch
import torch.nn.functional as F
from torch import nn


class SingleHeadSelfAttentionWithMask(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        q, k, v = x @ self.W_Q + self.b_Q, x @ self.W_K + self.b_K, x @ self.W_V + self.b_V
        keep = None if mask is None else mask.bool()
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep) @ self.W_O + self.b_O
