"""The classes of the day-one notes (000 and 001). In their masks 1 or True = masked.

With `causal=True` the causal mask is combined with the mask argument.
"""

import torch
from torch import nn

from deep_learning.checks import count, last_axis
from deep_learning.masks import from_masked
from deep_learning.nn.attention_call import attend, check_input, check_tensor, zero_fully_masked
from regard.arrays import Array
from regard.axes import head_width
from regard.errors import ShapeError
from regard.functional.attention import merge_heads, split_heads
from regard.masks import Mask
from regard.reference.positions import sinusoidal_positions


class ScaledDotProductAttention(nn.Module):
    """softmax(Q Kᵀ / √d_k) V. `d_k` is the width of Q and K; if given, any other width is an error.

    With `causal`, each query sees itself and earlier positions; if T ≠ S the last query is at the last key.

    >>> Q = K = V = torch.eye(3)[None]
    >>> ScaledDotProductAttention(causal=True)(Q, K, V)[1][0, 0].tolist()
    [1.0, 0.0, 0.0]
    """

    def __init__(self, d_k: int | None = None, causal: bool = False) -> None:
        super().__init__()
        self.d_k = None if d_k is None else count("d_k", d_k)
        self.causal = causal

    def forward(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask | Array | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(…, T, d_v) and (…, T, S), for Q (B, T, d_k) or (B, H, T, d_k). mask 1 = masked."""
        check_tensor("Q", Q)
        if self.d_k is not None and Q.shape[-1] != self.d_k:
            raise ShapeError("d-k-width", d_k=self.d_k, found=Q.shape[-1], Q=tuple(Q.shape))
        visible = from_masked(mask, Q.ndim)
        if self.causal:
            visible = Mask.causal() if visible is None else Mask.causal() & visible
        return attend(Q, K, V, visible)


class MultiHeadAttention(nn.Module):
    """Project, split into heads, attend in each, merge, project.

    >>> out, weights = MultiHeadAttention(8, 2)(*[torch.ones(1, 3, 8)] * 3)
    >>> tuple(out.shape), tuple(weights.shape)
    ((1, 3, 8), (1, 2, 3, 3))
    """

    def __init__(self, d_model: int, num_heads: int, causal: bool = False) -> None:
        super().__init__()
        self.d_model = count("d_model", d_model)
        self.num_heads = count("num_heads", num_heads)
        self.d_k = head_width(self.d_model, self.num_heads, heads_name="num_heads")
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention(self.d_k, causal)

    def forward(
        self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, mask: Mask | Array | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, d_model) and (B, H, T, S). mask 1 = masked: (T, S), (B, 1, S), (B, T, S), (B, 1, 1, S), …"""
        for name, x in (("Q", Q), ("K", K), ("V", V)):
            check_input(name, x, self.d_model)
        projected = self.W_q(Q), self.W_k(K), self.W_v(V)
        q, k, v = (split_heads(x, self.num_heads) for x in projected)  # B H T d_k, B H S d_k
        attended, weights = self.attention(q, k, v, mask)
        return zero_fully_masked(self.W_o(merge_heads(attended)), weights), weights


class PositionalEncoding(nn.Module):
    """x + pe[:, :T], sines in the even columns and cosines in the odd ones; an odd d_model ends with a sine.

    `pe` is (1, max_len, d_model). Raises ShapeError for more than `max_len` positions.

    >>> PositionalEncoding(4)(torch.zeros(1, 2, 4))[0, 0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    pe: torch.Tensor

    def __init__(self, d_model: int, max_len: int = 5000) -> None:
        super().__init__()
        self.d_model, self.max_len = count("d_model", d_model), count("max_len", max_len)
        table = torch.from_numpy(sinusoidal_positions(self.max_len, self.d_model))
        self.register_buffer("pe", table.to(torch.get_default_dtype())[None])  # 1 max_len D

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, d_model), in the dtype of x."""
        check_input("x", x, self.d_model)
        length = x.shape[1]
        if length > self.max_len:
            raise ShapeError("positions-too-long", T=length, max_len=self.max_len)
        return x + self.pe[:, :length].to(x.dtype)


class FeedForward(nn.Module):
    """ReLU(x W₁ + b₁) W₂ + b₂, for each position separately; `d_ff` defaults to 4 · d_model.

    >>> FeedForward(8)(torch.ones(2, 3, 8)).shape
    torch.Size([2, 3, 8])
    """

    def __init__(self, d_model: int, d_ff: int | None = None) -> None:
        super().__init__()
        self.d_model = count("d_model", d_model)
        self.d_ff = 4 * self.d_model if d_ff is None else count("d_ff", d_ff)
        self.linear1 = nn.Linear(self.d_model, self.d_ff)
        self.linear2 = nn.Linear(self.d_ff, self.d_model)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (…, d_model) to the same shape."""
        check_tensor("x", x)
        last_axis("x", x, self.d_model)
        out: torch.Tensor = self.linear2(torch.relu(self.linear1(x)))
        return out
