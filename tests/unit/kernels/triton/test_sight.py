"""Who sees anything at all, told from a Sight: as the mask itself says, and without asking it for rectangles."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_calls import ANY_MASK, MASKS, any_mask
from regard import Mask
from regard.kernels.triton.sight import Sight, sight_of, who_sees
from regard.masks import BoundMask


def check(mask: Mask, T: int, S: int, B: int = 1) -> None:
    like = torch.zeros(B, 1, 1, 1)
    bound = mask.bind((B, 1), T, S, like)
    right = bound.sees(torch.ones(B, 1, S, dtype=torch.bool)).expand(B, 1, T)
    assert torch.equal(who_sees(sight_of(bound), T, S, like.device).expand(B, T), right[:, 0])
    seen = mask.dense(T, S, like).expand(B, 1, T, S)[:, 0].any(-2)
    assert torch.equal(who_sees(sight_of(bound).swapped(), S, T, like.device).expand(B, S), seen)


@pytest.mark.parametrize("name", [name for name, mask in MASKS.items() if mask is not None])
def test_masks(name: str) -> None:
    check(MASKS[name], 21, 33, B=2)


@given(T=st.integers(1, 50), S=st.integers(1, 50), **ANY_MASK)
def test_any_mask(T: int, S: int, **parts: Any) -> None:
    check(any_mask(T, S, **parts), T, S)


@given(T=st.integers(1, 9), S=st.integers(1, 9), left=st.integers(-4, 4), right=st.integers(-4, 4))
def test_sides_below_nothing(T: int, S: int, left: int, right: int) -> None:
    """Causal and counted from the first key, a query may see less than its own."""
    here, keys = torch.arange(T)[:, None] + S - T, torch.arange(S)
    right_answer = ((keys >= here - left) & (keys <= here + right)).any(-1)
    ids = torch.zeros(1, S, dtype=torch.int64)
    for sight in (Sight(left, right, S - T), Sight(left, right, S - T, ids[:, :1].expand(1, T), ids)):
        assert torch.equal(who_sees(sight, T, S, keys.device)[0], right_answer)


def test_many_segments_are_not_asked_for_rectangles(monkeypatch: pytest.MonkeyPatch) -> None:
    """At this length that took a minute."""
    n = 131072
    ids = torch.arange(n) // 5000
    mask = (Mask.segments(ids, queries=ids + 1) & Mask.causal()).bind((1, 1), n, n, torch.zeros(1))
    monkeypatch.delattr(BoundMask, "sees")
    assert not who_sees(sight_of(mask), n, n, ids.device).any()
