import math

import torch
from torch import Tensor, nn


class SingleHeadSelfAttentionWithMask(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.W_Q = nn.Parameter(torch.empty(d_model, d_model))
        self.W_K = nn.Parameter(torch.empty(d_model, d_model))
        self.W_V = nn.Parameter(torch.empty(d_model, d_model))
        self.W_O = nn.Parameter(torch.empty(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            nn.init.xavier_uniform_(W)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        Q = x @ self.W_Q + self.b_Q
        K = x @ self.W_K + self.b_K
        V = x @ self.W_V + self.b_V
        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_model)  # (B, T, T)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        out = weights @ V
        return out @ self.W_O + self.b_O, weights
