import torch
from torch.nn import Module
from torch.nn.functional import scaled_dot_product_attention


class ScaledDotProductAttention(Module):
    def __init__(self, d_k=None, causal=False):
        super().__init__()
        self.causal = causal

    def forward(self, Q, K, V, mask=None):
        T, S = Q.shape[-2], K.shape[-2]
        see = torch.ones((T, S), dtype=torch.bool)
        if self.causal:
            place = torch.arange(S - T, S)
            see = torch.arange(S)[None, :] <= place[:, None]
        if mask is not None:
            see = see & ~(mask if mask.dim() == 2 or Q.dim() == 3 else mask.unsqueeze(1)).to(torch.bool)
        return scaled_dot_product_attention(Q, K, V, attn_mask=see)
