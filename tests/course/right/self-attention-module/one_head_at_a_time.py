import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads, self.width = n_heads, d_model // n_heads
        for name in ("W_q", "W_k", "W_v", "W_o"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, x, mask=None):
        Q, K, V = self.W_q(x), self.W_k(x), self.W_v(x)
        outs, maps = [], []
        for h in range(self.heads):
            cut = slice(h * self.width, (h + 1) * self.width)
            scores = torch.bmm(Q[..., cut], K[..., cut].transpose(1, 2)) / self.width**0.5
            if mask is not None:
                scores = torch.where(mask.bool(), scores, torch.tensor(float("-inf")))
            maps.append(scores.softmax(-1))
            outs.append(maps[-1] @ V[..., cut])
        return self.W_o(torch.cat(outs, dim=-1)), torch.stack(maps, dim=1)
