"""MaskBands equal the mask they are made from; `swapped` is its transpose."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from narrowing import present
from torch import Tensor

from kernel_calls import ANY_MASK, MASKS, any_mask
from regard import Mask
from regard.kernels.triton.attention import _masked_lse
from regard.kernels.triton.mask_bands import MaskBands, bands_of
from regard.masks import BoundMask


def visible_in(bands: MaskBands, T: int, S: int) -> Tensor:
    """(1 or B) T S, by definition."""
    positions, keys = torch.arange(T)[:, None] + bands.offset, torch.arange(S)
    left, right = (S + T if side is None else side for side in (bands.left, bands.right))
    visible = ((keys >= positions - left) & (keys <= positions + right))[None]
    if bands.queries is None or bands.keys is None:
        return visible
    return visible & (bands.queries[:, :, None] == bands.keys[:, None, :])


def check(mask: Mask, T: int, S: int, B: int = 1) -> None:
    like = torch.zeros(B, 1, 1, 1)
    bands = bands_of(mask.bind((B, 1), T, S, like))
    right = mask.dense(T, S, like).expand(B, 1, T, S)[:, 0]
    assert torch.equal(visible_in(bands, T, S).expand(B, T, S), right)
    assert torch.equal(visible_in(bands.swapped(), S, T).expand(B, S, T), right.mT)


@pytest.mark.parametrize("name", [name for name, mask in MASKS.items() if mask is not None])
def test_every_mask(name: str) -> None:
    check(present(MASKS[name]), 21, 33, B=2)


@given(T=st.integers(1, 50), S=st.integers(1, 50), **ANY_MASK)
def test_random_masks(T: int, S: int, **parts: Any) -> None:
    check(any_mask(T, S, **parts), T, S)


def test_many_segments_do_not_evaluate_the_mask_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """At this length that took a minute."""
    monkeypatch.delattr(BoundMask, "block")
    n = 131072
    ids = torch.arange(n) // 5000
    mask = (Mask.segments(ids, queries=ids + 1) & Mask.causal()).bind((1, 1), n, n, torch.zeros(1))
    assert (_masked_lse(torch.zeros(1, 1, n), mask, n) == -torch.inf).all()
