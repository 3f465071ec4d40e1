import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        H = self.num_heads
        q, k, v = (
            torch.einsum("btd,dhe->bhte", x, W.unflatten(1, (H, -1))) + b.unflatten(0, (H, 1, -1))
            for W, b in ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))
        )
        keep = None if mask is None else mask > 0
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, keep)
        return torch.einsum("bhte,hed->btd", mixed, self.W_O.unflatten(0, (H, -1))) + self.b_O
