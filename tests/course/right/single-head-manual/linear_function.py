import torch
from torch import nn
from torch.nn import functional as F


class SingleHeadSelfAttention_Manual(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        for letter in "QKVO":
            self.register_parameter(f"W_{letter}", nn.Parameter(torch.eye(d_model)))
            self.register_parameter(f"b_{letter}", nn.Parameter(torch.zeros(d_model)))

    def forward(self, x):
        q, k, v = (F.linear(x, getattr(self, f"W_{i}").t(), getattr(self, f"b_{i}")) for i in "QKV")
        out = F.scaled_dot_product_attention(q, k, v)
        return F.linear(out, self.W_O.t(), self.b_O)
