"""Inputs shared by the kernel tests: one mask of every supported kind, tensors, and a strategy for random masks."""

from typing import Any

import torch
from hypothesis import strategies as st
from narrowing import Three, Two, three
from torch import Tensor

from regard import Mask

IDS = torch.tensor([3] * 5 + [7] * 19 + [5] * 5 + [9] * 4)
MASKS = {
    "full": None,
    "causal": Mask.causal(),
    "causal-first": Mask.causal(align="first"),
    "window": Mask.window(5, 3),
    "left": Mask.window(4, None),
    "segments": Mask.segments(IDS),
    "packed": Mask.segments(IDS) & Mask.causal(),
    "mixed": Mask.segments(IDS % 2) & Mask.window(9, 2),
    "padding": Mask.from_keep(torch.arange(33) < torch.tensor([[20], [33]])) & Mask.causal(),
    "holes": Mask.from_keep(torch.arange(33) % 5 != 0),
    "prefix": Mask.prefix(torch.tensor([4, 17])),
    "apart": Mask.segments(IDS % 2, queries=IDS[-21:] * 0 + 4) & Mask.padding(IDS, pad=7),
}
"""For 21 queries and 33 keys; padding and prefix have two samples."""

ANY_MASK = {
    "left": st.none() | st.integers(0, 30),
    "right": st.none() | st.integers(0, 30),
    "ids": st.none() | st.lists(st.integers(0, 2), min_size=50, max_size=50),
}
"""The arguments of `any_mask`, for lengths up to 50."""


def any_mask(T: int, S: int, left: int | None, right: int | None, ids: list[int] | None) -> Mask:
    mask = Mask.window(left, right)
    if ids is None:
        return mask
    return mask & Mask.segments(torch.tensor(ids[:S]), queries=torch.tensor(ids[-T:]))


def tensors(
    T: int, S: int, E: int = 16, Ev: int = 16, *, B: int = 1, H: int = 2, G: int = 1, dtype: Any = torch.float32
) -> Three[Tensor]:
    """q B H T E, k B G S E, v B G S Ev."""
    make = torch.Generator().manual_seed(0)
    shapes = ((B, H, T, E), (B, G, S, E), (B, G, S, Ev))
    return three(torch.randn(shape, generator=make).to(dtype) for shape in shapes)


def pair(T: int, S: int, E: int = 16, **options: Any) -> Two[Tensor]:
    """q and k only."""
    return tensors(T, S, E, **options)[:2]
