import torch
from torch import nn
from torch.nn.functional import multi_head_attention_forward


class MultiHeadSelfAttention(nn.Module):
    """PyTorch's own function: it takes (T, B, D), transposed weights, and True = hidden."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.W_Q = nn.Parameter(torch.randn(d_model, d_model))
        self.W_K = nn.Parameter(torch.randn(d_model, d_model))
        self.W_V = nn.Parameter(torch.randn(d_model, d_model))
        self.W_O = nn.Parameter(torch.randn(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        hidden = None
        if mask is not None:
            hidden = (mask == 0).expand(-1, self.num_heads, -1, -1).flatten(0, 1)
        x = x.transpose(0, 1)
        out, weights = multi_head_attention_forward(
            x,
            x,
            x,
            self.d_model,
            self.num_heads,
            torch.cat([self.W_Q.T, self.W_K.T, self.W_V.T]),
            torch.cat([self.b_Q, self.b_K, self.b_V]),
            None,
            None,
            False,
            0.0,
            self.W_O.T,
            self.b_O,
            training=False,
            attn_mask=hidden,
            average_attn_weights=False,
        )
        return out.transpose(0, 1), weights
