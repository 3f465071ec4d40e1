import math

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """Multi-head self-attention. In the mask, 0 or False means hidden.

    多头自注意力。掩码里 0 或 False 表示屏蔽。
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_k = d_model // n_heads

        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def scaled_dot_product_attention(
        self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # x (B, T, d_model), mask (B, T, T) -> (B, T, d_model), (B, n_heads, T, T)
        raise NotImplementedError
