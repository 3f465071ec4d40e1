"""Rectangles of one head at any zoom are equal to brute force: exact weights cut out, then pooled by the reference."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard
from regard import Mask, See
from regard.errors import ArgumentError
from regard.records import Record
from regard.trace import Trace
from regard.trace.pooling import pool
from regard.views.explorer.source import TraceSource
from regard.views.explorer.zoom import crop, pooled_rectangle, zoomed
from regard.views.picture import picture


def recorded(T: int, S: int, *, H: int = 2, G: int = 1, B: int = 2, mask: Any = None, **options: Any) -> Record:
    rng = np.random.default_rng(T * 1000 + S)
    q, k, v = (rng.standard_normal((B, heads, n, 3)) for heads, n in ((H, T), (G, S), (G, S)))
    see = See(map=4, qk=True)
    return regard.attend(q, k, v, mask=mask, see=see, **options)[1]


def brute_force(record: Record, sample: int, head: int, rows: slice, cols: slice, high: int, wide: int) -> np.ndarray:
    """Every weight of every head, then the mean over queries that attend to anything, in the plainest way."""
    weights = np.asarray(record.weights())[sample, head]
    cells = np.zeros((-(-(rows.stop - rows.start) // high), -(-(cols.stop - cols.start) // wide)))
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            down = slice(rows.start + i * high, min(rows.stop, rows.start + (i + 1) * high))
            across = slice(cols.start + j * wide, min(cols.stop, cols.start + (j + 1) * wide))
            count = weights[down].any(-1).sum()
            cells[i, j] = weights[down, across].sum() / max(1, count)
    return cells


MASKS = st.sampled_from(["none", "causal", "window", "padding", "segments", "dense", "prefix"])


def mask_of(name: str, B: int, T: int, S: int) -> Any:
    rng = np.random.default_rng(S)
    match name:
        case "none":
            return None
        case "causal":
            return Mask.causal()
        case "window":
            return Mask.causal() & Mask.window(3, 0)
        case "padding":
            keep = np.arange(S) >= np.arange(B)[:, None]
            return Mask.from_keep(keep.astype(int))
        case "segments":
            return Mask.segments(np.sort(rng.integers(0, 3, (B, S)), axis=-1)) if T <= S else Mask.window(2, 2)
        case "prefix":
            return Mask.prefix(2) | Mask.causal()
        case _:
            return Mask.of(rng.random((B, 1, T, S)) < 0.6)


@given(st.data(), MASKS, st.integers(1, 23), st.integers(1, 23), st.sampled_from([(1, 1), (2, 1), (4, 2)]))
def test_a_rectangle_is_brute_force_pooling(
    data: st.DataObject, name: str, T: int, S: int, heads: tuple[int, int]
) -> None:
    H, G = heads
    record = recorded(T, S, H=H, G=G, mask=mask_of(name, 2, T, S))
    a, c = data.draw(st.integers(0, T - 1)), data.draw(st.integers(0, S - 1))
    rows, cols = slice(a, data.draw(st.integers(a + 1, T))), slice(c, data.draw(st.integers(c + 1, S)))
    most = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))
    sample, head = data.draw(st.integers(0, 1)), data.draw(st.integers(0, H - 1))
    found = pooled_rectangle(record, sample, head, rows, cols, most)
    assert found.cells.shape[0] <= most[0]
    assert found.cells.shape[1] <= most[1]
    expected = brute_force(record, sample, head, rows, cols, found.high, found.wide)
    np.testing.assert_allclose(found.cells, expected, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"softcap": 2.0}, {"scale": 0.1}, {"bias": np.linspace(-1, 1, 11 * 13).reshape(11, 13)}]
)
def test_scores_are_changed_as_in_the_call(options: dict[str, Any]) -> None:
    record = recorded(11, 13, **options)
    found = pooled_rectangle(record, 1, 1, slice(2, 11), slice(1, 12), (3, 4))
    expected = brute_force(record, 1, 1, slice(2, 11), slice(1, 12), found.high, found.wide)
    np.testing.assert_allclose(found.cells, expected, atol=1e-12)


def test_a_row_of_cells_larger_than_a_block_is_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.views.explorer.zoom.SCORES_AT_A_TIME", 8)
    record = recorded(17, 19, mask=Mask.causal())
    found = pooled_rectangle(record, 0, 1, slice(0, 17), slice(0, 19), (3, 4))
    expected = brute_force(record, 0, 1, slice(0, 17), slice(0, 19), found.high, found.wide)
    np.testing.assert_allclose(found.cells, expected, atol=1e-12)


def test_weights_from_tensors_give_the_same_cells() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 4, 30, 8), dtype=np.float32)
    for mask in (None, Mask.causal(), Mask.from_keep(np.array([[0] * 3 + [1] * 27]))):
        see = See(map=4, qk=True)
        ours = regard.attend(q, k, k, mask=mask, see=see)[1]
        theirs = regard.attend(torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(k), mask=mask, see=see)[1]
        one, other = (
            pooled_rectangle(record, 0, 2, slice(5, 29), slice(3, 30), (5, 6)).cells for record in (ours, theirs)
        )
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_given_weights_and_nan_are_pooled_too() -> None:
    weights = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    weights[4] = np.nan
    weights[0] = 0
    record = Trace.from_weights(weights, map=3)[0]
    found = pooled_rectangle(record, 0, 0, slice(0, 9), slice(0, 9), (3, 3))
    np.testing.assert_allclose(found.cells, pool(weights, (weights != 0).any(-1).astype(int), 3, 3)[0])
    assert found.attending.tolist() == [2, 3, 3]


def test_the_whole_rectangle_is_the_map() -> None:
    record = recorded(64, 64, mask=Mask.causal())
    found = pooled_rectangle(record, 0, 1, slice(0, 64), slice(0, 64), (4, 4))
    np.testing.assert_allclose(found.cells, np.asarray(record.map)[0, 1], atol=1e-6)


def test_a_large_region_comes_from_the_map_widened_to_whole_bins() -> None:
    weights = np.full((1000, 1000), 1e-3)
    drawn = picture(Trace.from_weights(weights, map=250)[0], 0, 0)
    found = zoomed(drawn, slice(101, 502), slice(1, 999), (512, 512))
    assert (found.rows, found.cols) == (slice(100, 504), slice(0, 1000))
    assert (found.high, found.wide) == (4, 4)
    np.testing.assert_allclose(found.cells, 4e-3)
    small = zoomed(drawn, slice(101, 202), slice(1, 102), (512, 512))
    assert (small.rows, small.high) == (slice(101, 202), 1)


def test_a_map_alone_answers_with_the_cells_it_has() -> None:
    record = Trace.from_weights(np.full((100, 100), 0.01), map=10)[0].changed(exact=None)
    answer = TraceSource(Trace(record)).rectangle(0, 0, [5, 25], [0, 10], [64, 64])
    assert answer.about["rows"] == [0, 30]
    assert answer.about["high"] == 10
    assert answer.about["exact"] is False
    np.testing.assert_allclose(answer.arrays["cells"], 0.1, rtol=1e-6)


def test_labels_come_with_single_tokens() -> None:
    trace = Trace.from_weights(np.eye(40), [f"t{i}" for i in range(40)], map=8)
    source = TraceSource(trace)
    about = source.rectangle(0, 0, [3, 5], [10, 13], [16, 16]).about
    assert about["labels"] == {"queries": ["t3", "t4"], "keys": ["t10", "t11", "t12"], "written": None}
    assert about["exact"] is True
    assert source.rectangle(0, 0, [0, 40], [10, 13], [16, 16]).about["labels"]["queries"] is None


@pytest.mark.parametrize(("rows", "name"), [([5, 5], "rows"), ([40, 50], "rows"), ([7, 3], "rows")])
def test_a_range_outside_is_one_sentence(rows: list[int], name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} {rows[0]}–{rows[1]} are outside of the 40 positions"):
        TraceSource(Trace.from_weights(np.eye(40))).rectangle(0, 0, rows, [0, 4], [8, 8])


def test_crop_pools_the_map_to_the_size() -> None:
    drawn = picture(Trace.from_weights(np.eye(64), map=16)[0], 0, 0)
    found = crop(drawn, slice(0, 64), slice(0, 64), (4, 8))
    assert found.cells.shape == (4, 8)
    assert (found.high, found.wide) == (16, 8)
    assert found.attending.tolist() == [16] * 4
