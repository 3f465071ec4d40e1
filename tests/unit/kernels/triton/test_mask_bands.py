"""A Sight allows what the mask allows that it was made of; and its mirror image, what keys are seen by."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kernel_calls import ANY_MASK, MASKS, any_mask
from regard import Mask
from regard.kernels.triton.mask_bands import Sight, sight_of
from regard.kernels.triton.observe import _settled
from regard.masks import BoundMask


def allowed(sight: Sight, T: int, S: int) -> Tensor:
    """(1 or B) T S, in so many words."""
    here, keys = torch.arange(T)[:, None] + sight.offset, torch.arange(S)
    left, right = (S + T if side is None else side for side in (sight.left, sight.right))
    seen = ((keys >= here - left) & (keys <= here + right))[None]
    if sight.queries is None or sight.keys is None:
        return seen
    return seen & (sight.queries[:, :, None] == sight.keys[:, None, :])


def check(mask: Mask, T: int, S: int, B: int = 1) -> None:
    like = torch.zeros(B, 1, 1, 1)
    sight = sight_of(mask.bind((B, 1), T, S, like))
    right = mask.dense(T, S, like).expand(B, 1, T, S)[:, 0]
    assert torch.equal(allowed(sight, T, S).expand(B, T, S), right)
    assert torch.equal(allowed(sight.swapped(), S, T).expand(B, S, T), right.mT)


@pytest.mark.parametrize("name", [name for name, mask in MASKS.items() if mask is not None])
def test_masks(name: str) -> None:
    check(MASKS[name], 21, 33, B=2)


@given(T=st.integers(1, 50), S=st.integers(1, 50), **ANY_MASK)
def test_any_mask(T: int, S: int, **parts: Any) -> None:
    check(any_mask(T, S, **parts), T, S)


def test_many_segments_are_not_asked_for_rectangles(monkeypatch: pytest.MonkeyPatch) -> None:
    """At this length that took a minute."""
    monkeypatch.delattr(BoundMask, "block")
    n = 131072
    ids = torch.arange(n) // 5000
    mask = (Mask.segments(ids, queries=ids + 1) & Mask.causal()).bind((1, 1), n, n, torch.zeros(1))
    assert (_settled(torch.zeros(1, 1, n), mask, n) == -torch.inf).all()
