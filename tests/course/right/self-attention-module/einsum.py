import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask=None):
        def heads(layer):
            return layer(x).unflatten(-1, (self.n_heads, -1))  # b t h e

        q, k, v = heads(self.W_q), heads(self.W_k), heads(self.W_v)
        scores = torch.einsum("bihe,bjhe->bhij", q / q.shape[-1] ** 0.5, k)
        if mask is not None:
            scores = scores + torch.log(mask[:, None].to(scores.dtype))
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
        out = torch.einsum("bhij,bjhe->bihe", weights, v).flatten(-2)
        return self.W_o(out), weights
