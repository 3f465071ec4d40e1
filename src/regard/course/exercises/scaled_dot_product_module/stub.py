import math

import torch
from torch import Tensor, nn


class ScaledDotProductAttention(nn.Module):
    """softmax(Q Kᵀ / √d_k) V. In the mask, 1 or True means hidden.

    softmax(Q Kᵀ / √d_k) V。掩码里 1 或 True 表示屏蔽。
    """

    def __init__(self, d_k: int | None = None, causal: bool = False) -> None:
        super().__init__()
        self.d_k = d_k
        self.causal = causal

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # Q (..., T, d_k), K (..., S, d_k), V (..., S, d_v) -> (..., T, d_v), (..., T, S)
        raise NotImplementedError
