import torch
from torch import nn


class Projections(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))


class EncoderLayer(nn.Module):
    """PyTorch's own attention function, with our weights."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.n_heads = n_heads
        self.attention = Projections(d_model)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        ours = self.attention
        flat = x.transpose(0, 1)
        attended, weights = nn.functional.multi_head_attention_forward(
            flat,
            flat,
            flat,
            x.shape[-1],
            self.n_heads,
            torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]),
            torch.cat([ours.W_q.bias, ours.W_k.bias, ours.W_v.bias]),
            None,
            None,
            False,
            0.0,
            ours.W_o.weight,
            ours.W_o.bias,
            training=False,
            key_padding_mask=None if mask is None else mask == 0,
            average_attn_weights=False,
        )
        x = self.norm1(x + attended.transpose(0, 1))
        return self.norm2(x + self.linear2(self.linear1(x).clamp(min=0))), weights
