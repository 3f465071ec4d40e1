import torch
from torch import nn


class SingleHeadSelfAttention_Manual(nn.Module):
    """Sample by sample, query by query."""

    def __init__(self, d_model):
        super().__init__()
        self.scale = d_model**-0.5
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        outs, rows = [], []
        for sample in x:
            Q = torch.addmm(self.b_Q, sample, self.W_Q)
            K = torch.addmm(self.b_K, sample, self.W_K)
            V = torch.addmm(self.b_V, sample, self.W_V)
            weights = torch.stack([torch.softmax(K @ q * self.scale, dim=0) for q in Q])
            rows.append(weights)
            outs.append(torch.addmm(self.b_O, weights @ V, self.W_O))
        return torch.stack(outs), torch.stack(rows)
