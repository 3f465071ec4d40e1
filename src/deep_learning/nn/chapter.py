"""The four self-attention classes of chapter 3 (004). In their masks 0 or False = masked, 1 = visible.

Parameter names, order and random draws are those of the document: with the same seed, its class and ours have the
same weights, and each loads the other's `state_dict`.
"""

import torch
from torch import nn

from deep_learning.checks import count
from deep_learning.masks import from_visible
from deep_learning.nn.attention_call import attend, check_input, zero_fully_masked
from regard.arrays import Array
from regard.axes import head_width
from regard.functional.attention import merge_heads, split_heads
from regard.masks import Mask


class _OwnParameters(nn.Module):
    """`W_Q W_K W_V W_O`, used as x @ W (nn.Linear stores Wᵀ), Xavier-uniform; `b_Q b_K b_V b_O`, zero."""

    def __init__(self, d_model: int, *, randn_first: bool) -> None:
        super().__init__()
        self.d_model = count("d_model", d_model)
        # The normal numbers are overwritten below; drawing them keeps the generator state equal to the document's.
        make = torch.randn if randn_first else torch.empty
        self.W_Q = nn.Parameter(make(d_model, d_model))
        self.W_K = nn.Parameter(make(d_model, d_model))
        self.W_V = nn.Parameter(make(d_model, d_model))
        self.W_O = nn.Parameter(make(d_model, d_model))
        self.b_Q = nn.Parameter(torch.zeros(d_model))
        self.b_K = nn.Parameter(torch.zeros(d_model))
        self.b_V = nn.Parameter(torch.zeros(d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        for W in (self.W_Q, self.W_K, self.W_V, self.W_O):
            nn.init.xavier_uniform_(W)

    def _project(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        check_input("x", x, self.d_model)
        return x @ self.W_Q + self.b_Q, x @ self.W_K + self.b_K, x @ self.W_V + self.b_V

    def _project_out(self, attended: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return zero_fully_masked(attended @ self.W_O + self.b_O, weights)


class _SingleHead(_OwnParameters):
    """The forward pass of the two single-head classes that use nn.Parameter."""

    def forward(self, x: torch.Tensor, mask: Mask | Array | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, d_model) and (B, T, T). mask 0 = masked: (B, T, T), (T, T), (B, 1, T)."""
        Q, K, V = self._project(x)
        attended, weights = attend(Q, K, V, from_visible(mask, axes=3))
        return self._project_out(attended, weights), weights


class SingleHeadSelfAttention_Manual(_SingleHead):  # noqa: N801 - the document's name
    """One head, written with nn.Parameter (004 §3.11); draws four `randn`, then four Xavier-uniform matrices.

    >>> out, weights = SingleHeadSelfAttention_Manual(8)(torch.ones(1, 4, 8))
    >>> weights[0, 0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, randn_first=True)


class SingleHeadSelfAttentionWithMask(_SingleHead):
    """The same (004 §3.12); draws the four Xavier-uniform matrices only.

    >>> out, weights = SingleHeadSelfAttentionWithMask(8)(torch.ones(1, 2, 8), torch.ones(2, 2).tril())
    >>> weights[0].tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """

    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, randn_first=False)


class SingleHeadSelfAttention(nn.Module):
    """One head, written with nn.Linear (004 §3.11): Kaiming-uniform weights and biases that are not zero.

    >>> out, weights = SingleHeadSelfAttention(8)(torch.ones(1, 4, 8))
    >>> tuple(out.shape), tuple(weights.shape)
    ((1, 4, 8), (1, 4, 4))
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = count("d_model", d_model)
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.fc_out = nn.Linear(d_model, d_model)

    def forward(self, x: torch.Tensor, mask: Mask | Array | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, d_model) and (B, T, T). mask 0 = masked: (B, T, T), (T, T), (B, 1, T)."""
        check_input("x", x, self.d_model)
        attended, weights = attend(self.W_Q(x), self.W_K(x), self.W_V(x), from_visible(mask, axes=3))
        return zero_fully_masked(self.fc_out(attended), weights), weights


class MultiHeadSelfAttention(_OwnParameters):
    """Many heads, written with nn.Parameter (004 §3.13); columns h·d_k … (h+1)·d_k belong to head h.

    >>> out, weights = MultiHeadSelfAttention(8, 2)(torch.ones(1, 3, 8))
    >>> tuple(out.shape), tuple(weights.shape)
    ((1, 3, 8), (1, 2, 3, 3))
    """

    def __init__(self, d_model: int, num_heads: int) -> None:
        num_heads = count("num_heads", num_heads)
        d_k = head_width(count("d_model", d_model), num_heads, heads_name="num_heads")
        super().__init__(d_model, randn_first=True)
        self.num_heads, self.d_k = num_heads, d_k

    def forward(self, x: torch.Tensor, mask: Mask | Array | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, T, d_model) and (B, H, T, T). mask 0 = masked: (B, 1, T, T), (B, T, T), (B, 1, T), (T, T)."""
        Q, K, V = (split_heads(projected, self.num_heads) for projected in self._project(x))  # B H T d_k
        attended, weights = attend(Q, K, V, from_visible(mask, axes=4))
        return self._project_out(merge_heads(attended), weights), weights
