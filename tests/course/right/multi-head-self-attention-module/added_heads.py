import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    """Each head has its own columns of W_Q, W_K, W_V and its own rows of W_O: their outputs are added."""

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
        width = x.shape[-1] // self.num_heads
        out, maps = self.b_O, []
        for h in range(self.num_heads):
            own = slice(h * width, (h + 1) * width)
            q = x @ self.W_Q[:, own] + self.b_Q[own]
            k = x @ self.W_K[:, own] + self.b_K[own]
            v = x @ self.W_V[:, own] + self.b_V[own]
            scores = q @ k.mT / width**0.5
            if mask is not None:
                scores = scores.masked_fill(~mask[:, 0].bool(), -torch.inf)
            maps.append(scores.softmax(dim=-1))
            out = out + maps[-1] @ v @ self.W_O[own]
        return out, torch.stack(maps, 1)
