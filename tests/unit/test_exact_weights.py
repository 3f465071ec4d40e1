"""Each kind of exact weights gives the rectangles of the whole matrix, and says what it knows of the mask."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies import Call, calls

from regard import Mask, See, Trace, attend
from regard.attention_call import WeightsFromQK
from regard.exact_weights import ExactWeights, KnownMask, WeightsArray
from regard.records import DecodeStep, Record
from regard.trace.from_weights import mean_of_heads
from regard.trace.measures import value_weighted

ROWS, COLS = slice(1, 4), slice(2, 5)


def recorded(**options: Any) -> Record:
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 4, 6, 8))
    return attend(q, k, v, see=See(map=None, values=True, qk=True), **options)[1]


def assert_rectangles(exact: ExactWeights | None, T: int, S: int) -> None:
    assert exact is not None
    whole = exact.block(slice(0, T), slice(0, S))
    np.testing.assert_allclose(exact.block(ROWS, COLS), whole[..., ROWS, COLS], atol=1e-12)
    np.testing.assert_allclose(whole.sum(-1), 1, atol=1e-9)


@pytest.mark.parametrize("make", [lambda record: record, mean_of_heads, value_weighted], ids=["q k", "mean", "values"])
def test_rectangles_are_parts_of_the_whole(make: Any) -> None:
    record = make(recorded(mask=Mask.causal()))
    assert_rectangles(record.exact, 6, 6)
    assert_rectangles(WeightsArray(record.weights()), 6, 6)


def test_steps_of_a_text_are_stitched() -> None:
    whole = recorded(mask=Mask.causal()).weights()
    parts = [Record(shape=(2, 4, 3, 3), kind="decoder", exact=WeightsArray(whole[:, :, :3, :3]))]
    for at in range(3, 6):
        row = WeightsArray(whole[:, :, at : at + 1, : at + 1])
        parts.append(Record(shape=(2, 4, 1, at + 1), kind="decoder", step=DecodeStep(at, (0, 1)), exact=row))
    stitched = Trace(parts).stitched(map=None)[0]
    assert_rectangles(stitched.exact, 6, 6)
    np.testing.assert_array_equal(stitched.weights(), whole)


@given(calls())
def test_the_mask_is_known_unless_a_bias_may_mask_too(call: Call) -> None:
    record = attend(call.q, call.k, call.v, **call.options, see=See(map=None, qk=True))[1]
    exact = record.exact
    assert isinstance(exact, WeightsFromQK)
    assert (exact.known_mask is None) == (exact.bias is not None)
    assert len(exact.arrays) == (3 if exact.bias is None else 4)


def test_no_mask_is_known_to_mask_nothing() -> None:
    seen = KnownMask(None, (1, 1)).bind(2, 3).block(slice(0, 2), slice(0, 3))
    assert np.all(seen)
    assert WeightsArray(np.ones((1, 1, 2, 3))).known_mask is None


@pytest.mark.parametrize("make", [lambda record: record, mean_of_heads, value_weighted], ids=["q k", "mean", "values"])
@pytest.mark.parametrize("mask", [None, Mask.causal(), Mask.from_keep(np.array([[1, 1, 1, 1, 0, 0], [1] * 6]))])
def test_one_head_is_part_of_all(make: Any, mask: Mask | None) -> None:
    record = make(recorded(mask=mask))
    whole = record.weights()
    for exact in (record.exact, WeightsArray(whole)):
        for sample, head in np.ndindex(*record.shape[:2]):
            one = exact.of_head(sample, head).block(ROWS, COLS)
            assert one.shape == (1, 1, 3, 3)
            np.testing.assert_allclose(one[0, 0], whole[sample, head, ROWS, COLS], atol=1e-12)


def test_weights_of_one_head_compute_no_other() -> None:
    record = recorded(mask=Mask.causal())
    exact = record.exact
    assert isinstance(exact, WeightsFromQK)
    shapes = []

    def compute(call: Any, lse: Any, rows: slice, cols: slice) -> Any:
        shapes.append(call.q.shape[:2])
        return exact.compute(call, lse, rows, cols)

    counted = record.changed(exact=replace(exact, compute=compute))
    np.testing.assert_allclose(counted.weights(rows=2, head=-1), record.weights()[:, -1, 2], atol=1e-12)
    assert shapes == [(1, 1), (1, 1)]  # once for each sample
