"""SegmentBounds equals brute force, and is not used where ids cannot be read."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import Mask
from regard.masks.intervals import SegmentBounds
from regard.masks.rules import Segments


@st.composite
def texts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Segments of queries, B T, and of keys, (1 or B) S: sorted or in any order, perhaps without a key."""
    B, T, S = draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    most = draw(st.integers(1, 9))
    queries, keys = rng.integers(0, most, (B, T)), rng.integers(0, most, (draw(st.sampled_from((1, B))), S))
    return (np.sort(queries), np.sort(keys)) if draw(st.booleans()) else (queries, keys)


@given(ids=texts(), data=st.data(), as_tensors=st.booleans())
def test_bounds_are_tight(ids: tuple[np.ndarray, np.ndarray], data: st.DataObject, as_tensors: bool) -> None:
    queries, keys = ids
    bounds = SegmentBounds(*(map(torch.from_numpy, ids) if as_tensors else ids))
    B, T = queries.shape
    start = data.draw(st.integers(0, T - 1))
    rows = slice(start, data.draw(st.integers(start + 1, T)))
    visible = queries[:, rows, None] == keys[:, None, :]
    for sample in (None, *range(B)):
        of_sample = visible if sample is None else visible[sample : sample + 1]
        places = np.flatnonzero(of_sample.any((0, 1)))
        assert bounds.reach(rows, sample) == ((places[0], places[-1] + 1) if len(places) else (0, 0))
        low, high = bounds.fully_visible(rows, sample)
        assert of_sample[..., low:high].all()
        gaps = any(np.diff(np.flatnonzero(row)).max(initial=1) > 1 for row in of_sample.reshape(-1, keys.shape[1]))
        if not gaps:
            assert high - low == of_sample.all((0, 1)).sum()


@pytest.mark.parametrize(
    ("queries", "keys"),
    [((1, 0), (1, 3)), ((1, 3), (1, 0)), ((0, 3), (0, 3))],
    ids=["no queries", "no keys", "no samples"],
)
def test_no_bounds_for_empty_ids(queries: tuple[int, int], keys: tuple[int, int]) -> None:
    assert SegmentBounds.of(np.zeros(queries, int), np.zeros(keys, int)) is None


def test_ids_on_another_device_are_not_read() -> None:
    ids = torch.zeros((1, 4), dtype=torch.long, device="meta")
    assert SegmentBounds.of(ids, ids) is None
    bound = Mask.segments(ids[0]).bind((1, 1), 4, 4, ids)
    assert isinstance(bound.rule, Segments)
    assert bound.reach(slice(0, 2)) == (0, 4)
    assert bound.rule.fully_visible(bound.frame, slice(0, 2)) == (0, 0)


@pytest.mark.parametrize("like", [None, torch.zeros(0)], ids=["numpy", "torch"])
def test_bounds_are_shared_by_all_heads_and_samples(like: torch.Tensor | None) -> None:
    bound = Mask.segments(np.array([[0, 0, 1, 1], [0, 1, 1, 1]])).bind((2, 2), 4, 4, like)
    first, rows = slice(0, 2), slice(0, 1)
    assert bound.reach(first) == (0, 4)
    assert [bound.pick(b, 0).reach(rows) for b in (0, 1)] == [(0, 2), (0, 1)]
    assert isinstance(bound.rule, Segments)
    picked = bound.pick(1, 1).rule
    assert isinstance(picked, Segments)
    assert picked.bounds is bound.rule.bounds
