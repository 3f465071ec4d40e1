"""Spans say what brute force says of rows and their segments, and are left alone where ids cannot be read."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import Mask
from regard.masks.intervals import Spans
from regard.masks.rules import Segments


@st.composite
def texts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Segments of queries, B T, and of keys, (1 or B) S: packed or in any order, perhaps of keys that there are not."""
    B, T, S = draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    most = draw(st.integers(1, 9))
    queries, keys = rng.integers(0, most, (B, T)), rng.integers(0, most, (draw(st.sampled_from((1, B))), S))
    return (np.sort(queries), np.sort(keys)) if draw(st.booleans()) else (queries, keys)


@given(ids=texts(), data=st.data(), as_tensors=st.booleans())
def test_they_are_as_tight_as_a_range_can_be(
    ids: tuple[np.ndarray, np.ndarray], data: st.DataObject, as_tensors: bool
) -> None:
    queries, keys = ids
    spans = Spans(*(map(torch.from_numpy, ids) if as_tensors else ids))
    B, T = queries.shape
    start = data.draw(st.integers(0, T - 1))
    rows = slice(start, data.draw(st.integers(start + 1, T)))
    seen = queries[:, rows, None] == keys[:, None, :]
    for sample in (None, *range(B)):
        of_sample = seen if sample is None else seen[sample : sample + 1]
        places = np.flatnonzero(of_sample.any((0, 1)))
        assert spans.reach(rows, sample) == ((places[0], places[-1] + 1) if len(places) else (0, 0))
        low, high = spans.certain(rows, sample)
        assert of_sample[..., low:high].all()
        gaps = any(np.diff(np.flatnonzero(row)).max(initial=1) > 1 for row in of_sample.reshape(-1, keys.shape[1]))
        if not gaps:
            assert high - low == of_sample.all((0, 1)).sum()


@pytest.mark.parametrize(
    ("queries", "keys"),
    [((1, 0), (1, 3)), ((1, 3), (1, 0)), ((0, 3), (0, 3))],
    ids=["no queries", "no keys", "no samples"],
)
def test_where_there_is_nothing_there_are_none(queries: tuple[int, int], keys: tuple[int, int]) -> None:
    assert Spans.of(np.zeros(queries, int), np.zeros(keys, int)) is None


def test_ids_elsewhere_are_not_waited_for() -> None:
    there = torch.zeros((1, 4), dtype=torch.long, device="meta")
    assert Spans.of(there, there) is None
    bound = Mask.segments(there[0]).bind((1, 1), 4, 4, there)
    assert isinstance(bound.rule, Segments)
    assert bound.reach(slice(0, 2)) == (0, 4)
    assert bound.rule.certain(bound.frame, slice(0, 2)) == (0, 0)


@pytest.mark.parametrize("like", [None, torch.zeros(0)], ids=["numpy", "torch"])
def test_all_heads_of_all_samples_share_what_was_found(like: torch.Tensor | None) -> None:
    bound = Mask.segments(np.array([[0, 0, 1, 1], [0, 1, 1, 1]])).bind((2, 2), 4, 4, like)
    first, rows = slice(0, 2), slice(0, 1)
    assert bound.reach(first) == (0, 4)
    assert [bound.pick(b, 0).reach(rows) for b in (0, 1)] == [(0, 2), (0, 1)]
    assert isinstance(bound.rule, Segments)
    picked = bound.pick(1, 1).rule
    assert isinstance(picked, Segments)
    assert picked.spans is bound.rule.spans
