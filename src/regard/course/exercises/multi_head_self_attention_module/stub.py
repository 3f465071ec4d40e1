import math

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    """Several heads with their own parameters, used as x @ W + b. In the mask, 0 or False means hidden.

    多头自注意力，自己管理参数：x @ W + b。掩码里 0 或 False 表示屏蔽。
    """

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
        # x (B, T, d_model), mask (B, 1, T, T) -> (B, T, d_model), (B, num_heads, T, T)
        raise NotImplementedError
