"""SelfAttention of the interview lesson (002), with its two open methods filled in. Mask 0 = masked."""

import torch
from torch import nn

from deep_learning.checks import count
from deep_learning.masks import from_visible
from deep_learning.nn.attention_call import attend, check_input, check_tensor, zero_fully_masked
from regard.arrays import Array
from regard.axes import head_width
from regard.functional.attention import merge_heads, split_heads
from regard.masks import Mask


class SelfAttention(nn.Module):
    """Multi-head self-attention. Raises IndivisibleError if n_heads does not divide d_model.

    >>> out, weights = SelfAttention(8, 2)(torch.ones(1, 3, 8))
    >>> tuple(out.shape), tuple(weights.shape)
    ((1, 3, 8), (1, 2, 3, 3))
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.d_model = count("d_model", d_model)
        self.n_heads = count("n_heads", n_heads)
        self.d_k = head_width(self.d_model, self.n_heads)
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def scaled_dot_product_attention(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask | Array | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(…, T, d_v) and (…, T, S), for Q (B, T, d_k) or (B, H, T, d_k). mask 0 = masked."""
        check_tensor("Q", Q)
        return attend(Q, K, V, from_visible(mask, Q.ndim))

    def forward(self, x: torch.Tensor, mask: Mask | Array | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, d_model) and (B, H, T, T). mask 0 = masked: (T, T), (B, T, T), (B, 1, T), (B, 1, T, T), …"""
        check_input("x", x, self.d_model)
        Q, K, V = (split_heads(W(x), self.n_heads) for W in (self.W_q, self.W_k, self.W_v))  # B H T d_k
        attended, weights = self.scaled_dot_product_attention(Q, K, V, mask)
        return zero_fully_masked(self.W_o(merge_heads(attended)), weights), weights
