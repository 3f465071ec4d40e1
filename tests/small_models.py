"""A two-layer model that computes attention by sdpa or by explicit matrix products, for tests of `watch`."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

H, D = 4, 16
ROADS = ["sdpa", "eager"]


class Attention(nn.Module):
    """Causal self-attention with a growing cache."""

    def __init__(self, road: str) -> None:
        super().__init__()
        self.road, self.num_heads, self.is_causal = road, H, True
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.cut: Tensor | None = None
        self.cache: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (H, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.cache:
            k, v = (torch.cat(pair, 2) for pair in zip(self.cache, (k, v), strict=True))
            self.cache[:] = [k, v]
        T, S = q.shape[2], k.shape[2]
        see = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        if self.cut is not None:  # by hand
            see = see & self.cut
        if self.road == "sdpa":
            causal = self.cut is None and T == S
            y = F.scaled_dot_product_attention(q, k, v, None if causal else see, is_causal=causal)
        else:
            lowest = torch.finfo(q.dtype).min
            scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~see, lowest)
            y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """Two layers."""

    def __init__(self, road: str = "sdpa") -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"attn": Attention(road)}) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer["attn"](x)  # type: ignore[index]
        return x

    def attention(self, number: int) -> Any:
        return self.layers[number]["attn"]  # type: ignore[index]


def inputs(T: int = 7) -> Tensor:
    return torch.randn(2, T, D, requires_grad=True)


def gradients(model: nn.Module, out: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(out.square().sum(), list(model.parameters())))
