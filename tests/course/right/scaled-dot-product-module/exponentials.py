import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """exp and sum by hand; an empty row is divided by 1."""

    def __init__(self, d_k: int | None = None, causal: bool = False):
        nn.Module.__init__(self)
        self.causal = causal

    def forward(self, Q, K, V, mask=None):
        scores = torch.einsum("...td,...sd->...ts", Q, K) / torch.tensor(float(K.shape[-1])).sqrt()
        visible = torch.ones_like(scores)
        if self.causal:
            visible = torch.tril(visible, diagonal=K.shape[-2] - Q.shape[-2])
        if mask is not None:
            each = mask if mask.dim() == 2 else mask.view(mask.shape[0], *[1] * (Q.dim() - 2), mask.shape[-1])
            visible = visible * (1 - each.float())
        top = scores.masked_fill(visible == 0, -torch.finfo(scores.dtype).max).max(dim=-1, keepdim=True).values
        exps = torch.exp((scores - top).clamp(max=0)) * visible
        total = exps.sum(-1, keepdim=True)
        weights = exps / torch.where(total == 0, torch.ones_like(total), total)
        return torch.einsum("...ts,...sd->...td", weights, V), weights
