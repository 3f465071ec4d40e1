import torch
import torch.nn as nn
import torch.nn.functional as F


class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_k=None, causal=False):
        super().__init__()
        self.d_k, self.causal = d_k, causal

    def forward(self, Q, K, V, mask=None):
        T, S = Q.size(-2), K.size(-2)
        add = torch.zeros(T, S)
        if self.causal:
            add = torch.triu(torch.full((T, S), float("-inf")), diagonal=S - T + 1)
        if mask is not None:
            if Q.dim() == 4 and mask.dim() == 3:
                mask = mask[:, None]
            add = add + torch.where(mask == 1, float("-inf"), 0.0)
        weights = F.softmax(torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5 + add, dim=-1)
        weights = torch.nan_to_num(weights, nan=0.0)
        return torch.matmul(weights, V)
