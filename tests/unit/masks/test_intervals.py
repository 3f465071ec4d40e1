"""The fast `any_visible` by key ranges equals the evaluation by rectangles, which would take minutes on long texts."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.arrays import to_numpy
from regard.masks import BoundMask, Mask
from regard.masks.bound import Not

KINDS = ("numpy", "torch")
IDS = st.sampled_from((0, 1, 2, -5, 2**62, -(2**62)))
SIDES = st.none() | st.integers(0, 9)


@st.composite
def parts(draw: st.DrawFn, B: int, T: int, S: int) -> Mask:
    """Segments in any order, perhaps without a query, and any number of rules that need no T × S array."""

    def ids(length: int) -> np.ndarray:
        rows = draw(st.sampled_from((1, B)))
        return np.array(draw(st.lists(st.lists(IDS, min_size=length, max_size=length), min_size=rows, max_size=rows)))

    mask = Mask.segments(ids(S), queries=ids(T))
    others = {
        "first": lambda: Mask.causal(align="first"),
        "window": lambda: Mask.window(draw(SIDES), draw(SIDES)),
        "padding": lambda: Mask.padding(ids(S)),
        "prefix": lambda: Mask.prefix(draw(st.integers(0, S + 1))),
        "prefixes": lambda: Mask.prefix(np.array(draw(st.lists(st.integers(0, S + 1), min_size=B, max_size=B)))),
    }
    for name in draw(st.lists(st.sampled_from(sorted(others)), unique=True)):
        mask = others[name]() & mask if draw(st.booleans()) else mask & others[name]()
    return mask if draw(st.booleans()) else mask | Mask.prefix(draw(st.integers(0, 2)))


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.integers(1, 3), st.integers(1, 12), st.integers(1, 12), st.integers(1, 2), st.integers(0, 999))
def test_fast_method_equals_the_slow_one(
    kind: str, data: st.DataObject, B: int, T: int, S: int, H: int, seed: int
) -> None:
    mask = data.draw(parts(B, T, S))
    flagged: Any = np.random.default_rng(seed).random((3, B, H, S)) < [[[[0.1]]], [[[0.5]]], [[[1.0]]]]
    like = torch.zeros(0) if kind == "torch" else None
    flagged = torch.from_numpy(flagged) if kind == "torch" else flagged
    bound = mask.bind((B, H), T, S, like)
    assert bound.rule.any_visible(bound.frame, flagged) is not None
    slow = BoundMask(Not(Not(bound.rule)), bound.frame)
    assert slow.rule.any_visible(bound.frame, flagged) is None
    right = to_numpy(slow.sees(flagged))
    np.testing.assert_array_equal(to_numpy(bound.sees(flagged)), right)
    for one, answer in zip(flagged, right, strict=True):  # as well as all at once
        np.testing.assert_array_equal(to_numpy(bound.sees(one)), answer)


@pytest.mark.parametrize("kind", KINDS)
def test_long_text_is_not_evaluated_by_rectangles(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At this length, evaluation by rectangles takes a minute."""
    n = 131_072
    like = torch.zeros(0) if kind == "torch" else None
    mask = Mask.segments(np.arange(n) // 5000) & Mask.window(99, 0) & Mask.prefix(n - 1) & Mask.causal(align="first")
    bound = mask.bind((1, 1), n, n, like)
    monkeypatch.delattr(BoundMask, "block")
    flagged = np.zeros((1, 1, n), bool)
    flagged[..., [77, 4990, n - 1]] = True
    visible = to_numpy(bound.sees(torch.from_numpy(flagged) if kind == "torch" else flagged))
    assert np.flatnonzero(visible).tolist() == [*range(77, 177), *range(4990, 5000)]


@pytest.mark.parametrize("kind", KINDS)
def test_window_wider_than_64_bits_masks_nothing(kind: str) -> None:
    like = torch.zeros(0) if kind == "torch" else None
    flagged: Any = np.array([[[False, False, True]]])
    flagged = torch.from_numpy(flagged) if kind == "torch" else flagged
    assert Mask.window(2**70, 2**70).bind((1, 1), 2, 3, like).sees(flagged).all()
