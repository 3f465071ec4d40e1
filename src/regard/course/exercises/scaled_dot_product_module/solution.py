import math

import torch
from torch import Tensor, nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_k: int | None = None, causal: bool = False) -> None:
        super().__init__()
        self.d_k = d_k
        self.causal = causal

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        d_k = Q.shape[-1]
        scores = Q @ K.transpose(-2, -1) / math.sqrt(d_k)  # (..., T, S)
        T, S = scores.shape[-2:]
        hidden = torch.zeros(T, S, dtype=torch.bool)
        if self.causal:
            hidden = hidden | torch.ones(T, S, dtype=torch.bool).triu(S - T + 1)
        if mask is not None:
            if mask.ndim == 3 and scores.ndim == 4:
                mask = mask.unsqueeze(1)  # (B, 1, 1, S): one for each sample, the same for all its heads
            hidden = hidden | mask.bool()
        scores = scores.masked_fill(hidden, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = weights.masked_fill(hidden, 0.0)  # where all is hidden, softmax gives NaN
        return weights @ V, weights
