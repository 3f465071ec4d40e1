import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask=None):
        t = x.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            *(t, t, t, self.d_model, self.n_heads, torch.empty(0)),
            torch.cat([self.W_q.bias, self.W_k.bias, self.W_v.bias]),
            *(None, None, False, 0.0, self.W_o.weight, self.W_o.bias),
            training=False,
            attn_mask=None if mask is None else (mask == 0).repeat_interleave(self.n_heads, dim=0),
            use_separate_proj_weight=True,
            q_proj_weight=self.W_q.weight,
            k_proj_weight=self.W_k.weight,
            v_proj_weight=self.W_v.weight,
            average_attn_weights=False,
        )
        return out.transpose(0, 1), weights
