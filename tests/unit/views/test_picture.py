"""Picture: one head, pooled so that rows keep their sums, and the checks of its arguments."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import Record, See, Trace, attend
from regard.errors import ArgumentError, NotKeptError
from regard.reference import pooled_map, softmax
from regard.views.picture import chosen_head, chosen_records, chosen_sample, first_share, picture


def weights(*shape: int) -> np.ndarray:
    return softmax(np.random.default_rng(0).normal(size=shape))


@given(T=st.integers(1, 40), S=st.integers(1, 40), bins=st.integers(1, 12), cells=st.integers(1, 12))
def test_rows_of_a_pooled_picture_sum_to_one(T: int, S: int, bins: int, cells: int) -> None:
    record = Trace.from_weights(weights(T, S), map=bins)[0]
    fitted = picture(record, 0, 0).fitted(cells, cells)
    assert max(fitted.cells.shape) <= cells
    np.testing.assert_allclose(fitted.cells.sum(-1), 1)
    assert fitted.attending.sum() == T
    assert -(-T // fitted.high) == fitted.cells.shape[0]
    assert -(-S // fitted.wide) == fitted.cells.shape[1]


def test_pooling_weights_rows_by_the_queries_that_attend() -> None:
    q = np.random.default_rng(0).normal(size=(1, 1, 8, 4))
    mask = np.ones((8, 8), bool)
    mask[[0, 1, 2]] = False
    _, record = attend(q, q, q, mask=mask, see=See(map=4, qk=True))
    fitted = picture(record, 0, 0).fitted(1, 2)
    upper, lower = pooled_map(record.weights()[0, 0], 2)  # one query attends in the upper half, four in the lower
    np.testing.assert_allclose(fitted.cells[0], (upper + 4 * lower) / 5, atol=1e-6)


def test_only_cells_of_one_token_have_tokens() -> None:
    one = picture(Trace.from_weights(weights(4, 4), list("abcd"))[0], 0, 0)
    assert one.queries == one.keys == tuple("abcd")
    wide = one.fitted(4, 2)
    assert wide.queries == tuple("abcd")
    assert wide.keys is None


def test_each_sample_has_its_tokens() -> None:
    record = Trace.from_weights(weights(2, 1, 2, 2), [["a", "b"], ["c", "d"]])[0]
    assert picture(record, 0, 1).keys == ("c", "d")


def test_first_share_from_each_source() -> None:
    w = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 1.0]])
    exact = picture(Trace.from_weights(w)[0], 0, 0)
    assert first_share(exact) == pytest.approx(0.5)  # of the three queries that attend
    record = Trace.from_weights(w, map=2)[0]
    assert first_share(picture(record, 0, 0)) == pytest.approx(0.5)  # from the kept sink share
    pooled = picture(replace(record, sink=None), 0, 0)
    assert first_share(pooled) is None
    assert first_share(pooled, compute=True) == pytest.approx(1.5 / 4)  # without an LSE all queries of a bin count
    summed = Record(shape=(1, 1, 4, 4), map=pooled.cells[None, None], received=w.sum(0)[None, None])
    assert first_share(picture(summed, 0, 0)) == pytest.approx(1.5 / 4)
    assert first_share(picture(Trace.from_weights(np.ones((3, 1)))[0], 0, 0)) is None
    assert first_share(picture(Trace.from_weights(np.zeros((3, 3)))[0], 0, 0)) is None


def test_values_out_of_range_report_the_range() -> None:
    trace = Trace.from_weights(weights(2, 3, 4, 4))
    record = trace[0]
    assert chosen_head(record, -1) == 2
    assert chosen_sample(record, np.int64(1)) == 1
    for choose, words in (
        (lambda: chosen_head(record, 3), "head=3 .* 0 to 2"),
        (lambda: chosen_head(record, -4), "head=-4 .* 0 to 2"),
        (lambda: chosen_head(record, "all"), "head='all' .* 0 to 2"),  # type: ignore[arg-type]
        (lambda: chosen_sample(record, 2), "sample=2 .* 0 to 1"),
        (lambda: chosen_records(trace, 1), "layer=1 .* 0 to 0"),
        (lambda: chosen_records(Trace(), None), "no records"),
    ):
        with pytest.raises(ArgumentError, match=words):
            choose()
    with pytest.raises(ArgumentError, match="has none at all"):
        chosen_sample(Trace.from_weights(weights(0, 3, 4, 4))[0], 0)
    with pytest.raises(ArgumentError, match="has none at all"):
        chosen_head(Trace.from_weights(weights(1, 0, 4, 4))[0], 0)


def test_without_a_map_the_error_names_the_setting() -> None:
    with pytest.raises(NotKeptError, match=r"See\(map=256\)"):
        picture(Record(shape=(1, 1, 2, 2), name="h.0"), 0, 0)
