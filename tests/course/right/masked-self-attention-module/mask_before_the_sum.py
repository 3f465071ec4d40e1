import math

import torch
from torch import nn


class SingleHeadSelfAttentionWithMask(nn.Module):
    """The mask after the exponential and before the sum: the same as -inf."""

    def __init__(self, d_model):
        super().__init__()
        self.d_model = d_model
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        Q, K, V = (x @ W + b for W, b in ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V)))
        scores = torch.einsum("btd,bsd->bts", Q, K) / math.sqrt(self.d_model)
        seen = torch.ones_like(scores) if mask is None else mask.expand_as(scores)
        top = scores.masked_fill(seen == 0, -1e30).amax(-1, keepdim=True)
        exps = torch.exp((scores - top).clamp(max=0)) * seen
        weights = exps / exps.sum(dim=2, keepdim=True)
        return torch.einsum("bts,bsd,de->bte", weights, V, self.W_O) + self.b_O
