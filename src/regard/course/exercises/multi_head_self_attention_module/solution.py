import math

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
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
        B, T, _ = x.shape

        def split(x: Tensor) -> Tensor:
            return x.view(B, T, self.num_heads, self.d_k).transpose(1, 2)  # (B, H, T, d_k)

        Q = split(x @ self.W_Q + self.b_Q)
        K = split(x @ self.W_K + self.b_K)
        V = split(x @ self.W_V + self.b_V)
        scores = Q @ K.transpose(-2, -1) / math.sqrt(self.d_k)  # (B, H, T, T)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        merged = (weights @ V).transpose(1, 2).reshape(B, T, self.d_model)
        return merged @ self.W_O + self.b_O, weights
