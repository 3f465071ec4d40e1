import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q, self.W_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.W_v, self.W_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, bias):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        outs, maps = [], []
        for qh, kh, vh in zip(q.chunk(self.n_heads, -1), k.chunk(self.n_heads, -1), v.chunk(self.n_heads, -1)):
            w = torch.softmax(qh @ kh.mT / qh.shape[-1] ** 0.5 + bias, -1)
            maps.append(w)
            outs.append(w @ vh)
        return self.W_o(torch.cat(outs, -1)), torch.stack(maps, 1)


def norm(layer, x):
    centred = x - x.mean(-1, keepdim=True)
    return layer.weight * centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + layer.eps) + layer.bias


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        bias = 0.0 if mask is None else (1.0 - mask.float())[:, None, :] * -1e9
        attended, weights = self.attention(x, bias)
        x = norm(self.norm1, attended + x)
        return norm(self.norm2, x + self.linear2(torch.maximum(self.linear1(x), torch.zeros(())))), weights
