"""A bound mask, evaluated whole or in blocks, for NumPy and for torch, equals brute force."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import MaskCase, call_sizes, composed_masks, mask_leaves, raw_masks

from regard.arrays import to_numpy
from regard.axes import Sizes
from regard.masks import BoundMask, Mask

LIKES = {"numpy": None, "torch": torch.zeros(0)}


@st.composite
def bound_masks(draw: st.DrawFn, composed: bool = True) -> tuple[Sizes, MaskCase]:
    """Sizes without a zero, and a mask that fits them."""
    sizes = draw(call_sizes(lengths=(1, 2, 3, 5, 8)))
    kinds = (mask_leaves, composed_masks) if composed else (mask_leaves,)
    return sizes, draw(draw(st.sampled_from(kinds))(sizes))


def whole(bound: BoundMask, sizes: Sizes) -> np.ndarray:
    """The bound mask evaluated in one rectangle."""
    visible = bound.block(slice(0, sizes.T), slice(0, sizes.S))
    visible = visible if isinstance(visible, bool) else to_numpy(visible)
    return np.broadcast_to(visible, (sizes.B, sizes.H, sizes.T, sizes.S)).reshape(sizes.scores)


@pytest.mark.parametrize("kind", LIKES)
@given(bound_masks())
def test_whole_mask_equals_brute_force(kind: str, case: tuple[Sizes, MaskCase]) -> None:
    sizes, (mask, allowed) = case
    bound = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind])
    np.testing.assert_array_equal(whole(bound, sizes), allowed)


@st.composite
def rectangles(draw: st.DrawFn, sizes: Sizes) -> tuple[slice, slice]:
    """A rectangle that is not empty."""
    sides = []
    for length in (sizes.T, sizes.S):
        start = draw(st.integers(0, length - 1))
        sides.append(slice(start, draw(st.integers(start + 1, length))))
    return sides[0], sides[1]


@pytest.mark.parametrize("kind", LIKES)
@given(st.data())
def test_block_equals_that_part_of_the_whole(kind: str, data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    rows, cols = data.draw(rectangles(sizes))
    visible = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind]).block(rows, cols)
    expected = allowed.reshape(sizes.B, sizes.H, sizes.T, sizes.S)[..., rows, cols]
    visible = visible if isinstance(visible, bool) else to_numpy(visible)
    np.testing.assert_array_equal(np.broadcast_to(visible, expected.shape), expected)


@pytest.mark.parametrize("kind", LIKES)
@given(st.data())
def test_picked_head_equals_that_head(kind: str, data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    rows, cols = data.draw(rectangles(sizes))
    bound = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind])
    four = allowed.reshape(sizes.B, sizes.H, sizes.T, sizes.S)
    for b in range(sizes.B):
        for h in range(sizes.H):
            visible = bound.pick(b, h).block(rows, cols)
            if not isinstance(visible, bool):
                visible = to_numpy(visible)
                assert visible.ndim == 2
            np.testing.assert_array_equal(
                np.broadcast_to(visible, four[b, h, rows, cols].shape), four[b, h, rows, cols]
            )


@given(st.data())
def test_keys_outside_the_reach_are_masked(data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    rows, _ = data.draw(rectangles(sizes))
    bound = mask.bind(sizes.lead, sizes.T, sizes.S)
    four = allowed.reshape(sizes.B, sizes.H, sizes.T, sizes.S)
    picked = [bound, *(bound.pick(b, h) for b in range(min(1, sizes.B)) for h in range(sizes.H))]
    for one in picked:
        low, high = one.reach(rows)
        assert 0 <= low <= high <= sizes.S
        visible = four if one is bound else four[:1]
        assert not visible[..., rows, :low].any()
        assert not visible[..., rows, high:].any()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 7))
def test_reach_of_a_causal_mask_is_tight(T: int, S: int, step: int) -> None:
    """The reach lets a kernel skip half of the work, so it must be tight."""
    bound = Mask.causal().bind((), T, S)
    for start in range(0, T, step):
        rows = slice(start, min(T, start + step))
        assert bound.reach(rows) == (0, min(max(rows.stop + S - T, 0), S))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 7))
def test_max_reach_is_the_largest_reach_of_a_block(T: int, S: int, height: int) -> None:
    for mask in (Mask.causal(), Mask.window(3, 1), Mask.segments(np.arange(S) // 4, queries=np.arange(T) // 3)):
        bound = mask.bind((), T, S)
        reached = [bound.reach(slice(start, min(T, start + height))) for start in range(0, T, height)]
        assert bound.max_reach(height) == max(high - low for low, high in reached)
    assert Mask.causal().bind((), 0, S).max_reach(height) == 0


@pytest.mark.parametrize("kind", LIKES)
@pytest.mark.parametrize("rows_at_a_time", [1, 3, 256])
@given(st.data())
def test_any_visible_finds_rows_with_a_visible_flagged_key(kind: str, rows_at_a_time: int, data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    flagged = rng.random((sizes.B, sizes.H, sizes.S)) < 0.3
    four = allowed.reshape(sizes.B, sizes.H, sizes.T, sizes.S)
    given_flags = flagged if LIKES[kind] is None else torch.from_numpy(flagged)
    found = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind]).sees(given_flags, rows_at_a_time)
    np.testing.assert_array_equal(to_numpy(found), (four & flagged[:, :, None, :]).any(-1))


@pytest.mark.parametrize("kind", LIKES)
@given(st.data())
def test_fully_visible_range_and_reach_are_correct(kind: str, data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    four = allowed.reshape(sizes.B, sizes.H, sizes.T, sizes.S)
    bound = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind])
    start = data.draw(st.integers(0, max(0, sizes.T - 1)))
    rows = slice(start, data.draw(st.integers(min(start + 1, sizes.T), sizes.T)))
    if rows.start == rows.stop:
        return
    low, high = bound.rule.fully_visible(bound.frame, rows)
    assert four[..., rows, low:high].all()
    low, high = bound.reach(rows)
    assert not four[..., rows, :low].any()
    assert not four[..., rows, high:].any()
    # Keys outside of the partial tiles are fully visible.
    partial = np.zeros(sizes.S, bool)
    for part, _ in bound.partial_tiles(rows, 0, sizes.S, 3):
        partial[part] = True
    assert four[..., rows, :][..., ~partial].all()


@pytest.mark.parametrize("kind", LIKES)
@given(st.data())
def test_dense_equals_brute_force_and_its_blocks(kind: str, data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    rows, cols = data.draw(rectangles(sizes))
    dense = mask.dense(sizes.T, sizes.S, LIKES[kind])
    assert isinstance(dense, np.ndarray if LIKES[kind] is None else torch.Tensor)
    assert dense.dtype in (np.bool_, torch.bool)
    visible = to_numpy(dense)
    if visible.ndim == 4 and len(sizes.scores) == 3:
        visible = visible[:, 0]  # a mask per sample is (B, 1, T, S), which broadcasts over heads
    visible = visible.reshape(visible.shape[-len(sizes.scores) :]) if visible.ndim > len(sizes.scores) else visible
    np.testing.assert_array_equal(np.broadcast_to(visible, sizes.scores), allowed)
    part = to_numpy(mask.dense(sizes.T, sizes.S, LIKES[kind], rows=rows, cols=cols))
    np.testing.assert_array_equal(part, to_numpy(dense)[..., rows, cols])


@given(st.data())
def test_mask_of_a_dense_array_is_the_same_mask(data: st.DataObject) -> None:
    sizes, (mask, allowed) = data.draw(bound_masks())
    dense = mask.dense(sizes.T, sizes.S)
    if dense.ndim not in (2, len(sizes.scores)):
        return
    again = Mask.of(dense).bind(sizes.lead, sizes.T, sizes.S)
    np.testing.assert_array_equal(whole(again, sizes), allowed)


@given(st.data())
def test_changing_a_dense_array_leaves_the_mask_unchanged(data: st.DataObject) -> None:
    """Writing into the result of `dense` must not change the mask, nor fail."""
    sizes, (mask, _) = data.draw(bound_masks(composed=False))
    first = mask.dense(sizes.T, sizes.S)
    before = first.copy()
    first[...] = ~first
    np.testing.assert_array_equal(mask.dense(sizes.T, sizes.S), before)


@given(st.data())
def test_de_morgan_and_double_negation(data: st.DataObject) -> None:
    sizes = data.draw(call_sizes(lengths=(1, 2, 5)))
    a, b = data.draw(composed_masks(sizes, 1)).mask, data.draw(composed_masks(sizes, 1)).mask

    def visible(mask: Mask) -> np.ndarray:
        return whole(mask.bind(sizes.lead, sizes.T, sizes.S), sizes)

    np.testing.assert_array_equal(visible(~(a & b)), visible(~a | ~b))
    np.testing.assert_array_equal(visible(~(a | b)), visible(~a & ~b))
    np.testing.assert_array_equal(visible(~~a), visible(a))
    np.testing.assert_array_equal(visible(a & b), visible(b & a))


@pytest.mark.parametrize("kind", LIKES)
@given(st.data())
def test_sizes_of_zero_give_an_empty_block(kind: str, data: st.DataObject) -> None:
    """A call without queries or without keys is valid with any mask."""
    sizes = data.draw(call_sizes(lengths=(0, 1, 3)))
    mask, allowed = data.draw(composed_masks(sizes, 1))
    bound = mask.bind(sizes.lead, sizes.T, sizes.S, LIKES[kind])
    if allowed.size == 0 and 0 in (sizes.T, sizes.S):
        assert bound.block(slice(0, sizes.T), slice(0, sizes.S)) is False
    else:
        np.testing.assert_array_equal(whole(bound, sizes), allowed)


@given(st.data())
def test_mask_arrays_are_converted_to_the_array_type_of_the_call(data: st.DataObject) -> None:
    """A mask made of tensors works with NumPy, and the reverse."""
    sizes = data.draw(call_sizes(lengths=(1, 2, 5)))
    raw, allowed = data.draw(raw_masks(sizes))
    mask = Mask.of(torch.from_numpy(raw)) & Mask.causal()
    expected = np.broadcast_to(allowed, sizes.scores) & np.tri(sizes.T, sizes.S, sizes.S - sizes.T, dtype=bool)
    for like in LIKES.values():
        bound = mask.bind(sizes.lead, sizes.T, sizes.S, like)
        np.testing.assert_array_equal(whole(bound, sizes), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("kind", LIKES)
def test_ids_of_any_integer_dtype(kind: str, dtype: str) -> None:
    ids = np.array([[1, 1, 0], [2, 0, 0]], dtype)
    for mask in (Mask.padding(ids, pad=0), Mask.segments(ids), Mask.prefix(ids[:, 0])):
        assert to_numpy(mask.dense(3, 3, LIKES[kind])).shape == (2, 1, 3, 3)


def test_key_rows_are_recognised() -> None:
    keep = np.array([[True, True, False]])
    padding = Mask.padding(keep.astype(int))

    def key_rows(mask: Mask) -> Any:
        return mask.bind((1, 2), 3, 3).key_rows

    assert key_rows(Mask.causal()) == (True, None)
    causal, found = key_rows(Mask.causal() & padding)
    assert causal
    np.testing.assert_array_equal(found, keep[:, None, None, :])
    causal, found = key_rows(padding & Mask.padding(np.array([1, 0, 1])))
    assert not causal
    np.testing.assert_array_equal(found.reshape(-1), [True, False, False])
    for other in (Mask.window(2), Mask.causal() | padding, ~padding, Mask.of(np.ones((3, 3), bool))):
        assert key_rows(other) is None


def test_is_causal_for_causal_masks_only() -> None:
    def is_causal(mask: Mask) -> bool:
        return mask.bind((), 4, 4).is_causal

    assert is_causal(Mask.causal())
    assert is_causal(Mask.causal() & Mask.window(None, 3))
    for other in (Mask.window(2), Mask.window(None, 1), ~Mask.causal(), Mask.causal() & Mask.prefix(2)):
        assert not is_causal(other)


def test_long_mask_is_evaluated_without_a_dense_array() -> None:
    """A million positions: a T × S array would be a tebibyte."""
    n = 2**20
    ids = np.ones((1, n), np.int64)
    bound = (Mask.causal() & Mask.window(1024, 0) & Mask.padding(ids)).bind((1, 1), n, n)
    rows = slice(n // 2, n // 2 + 64)
    low, high = bound.reach(rows)
    assert (low, high) == (rows.start - 1024, rows.stop)
    assert bound.block(rows, slice(high, n)) is False
    block: Any = bound.block(rows, slice(low, high))
    assert block.shape == (1, 1, 64, 1088)
