"""See says what to keep; a Record gives exact rectangles or says how to get them."""

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import records
from regard.errors import ArgumentError, NotKeptError, TooLargeError
from regard.records import Record, See

WEIGHTS = np.random.default_rng(0).random((2, 3, 4, 5))


def kept(**more: Any) -> Record:
    """A Record whose rectangle is the real thing."""
    return Record(shape=(2, 3, 4, 5), rectangle=lambda rows, cols: WEIGHTS[..., rows, cols], **more)


def test_weights_must_fit_where_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, which a name stands in for."""
    monkeypatch.setattr(records, "WORTH_ASKING", 10)
    monkeypatch.setattr(records, "free_beside", {"on a GPU": 200}.get)
    for place in ({"kept": {"q": "on a GPU"}}, {"lse": "on a GPU"}):
        record = kept(**place)
        assert record.weights(slice(0, 2), slice(0, 4)).shape == (2, 3, 2, 4)
        with pytest.raises(TooLargeError, match="need 480 B, and 200 B are free"):
            record.weights()
    assert kept(lse="elsewhere").weights().shape == (2, 3, 4, 5)


# --- See -------------------------------------------------------------------------------------------------


def test_the_defaults_ask_for_a_map_and_the_lse() -> None:
    assert See() == See(map=256, lse=True, entropy=False, received=False, top=None, qk=False)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, False, "8", [8]])
@pytest.mark.parametrize("name", ["map", "top"])
def test_a_count_is_a_count(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        See(**{name: value})
    assert caught.value.key == "see-count"
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(See) if each.name not in ("map", "top")])
def test_a_switch_is_on_or_off(name: str) -> None:
    for value in ("yes", 1, None, np.array([True])):
        with pytest.raises(ArgumentError) as caught:
            See(**{name: value})
        assert str(caught.value) == f"See({name}=…) must be True or False; found {value!r}"
    assert getattr(See(**{name: np.bool_(True)}), name)


def test_numbers_from_numpy_are_counts() -> None:
    assert See(top=np.int64(3)).top == 3  # type: ignore[arg-type]


def test_how_something_may_be_had_is_part_of_what_is_asked() -> None:
    see = See(map=None, lse=False, sink=False, fused=True, differentiable=True)
    assert see.nothing
    assert See(fused=True) != See()
    assert pickle.loads(pickle.dumps(see)) == see
    assert dataclasses.replace(see, fused=False, differentiable=False) == See(map=None, lse=False, sink=False)


def test_a_record_says_whose_output_it_was() -> None:
    assert ", fused, holds: qk)" in repr(kept(fused=True))
    assert "fused" not in repr(kept())


def test_see_is_frozen_and_has_names_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        See().map = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        See(32)  # type: ignore[call-arg]


# --- weights ---------------------------------------------------------------------------------------------

SLICES = st.none() | st.builds(slice, st.none() | st.integers(-7, 7), st.none() | st.integers(-7, 7))


@given(SLICES, SLICES)
def test_a_rectangle_is_what_slicing_gives(rows: slice | None, cols: slice | None) -> None:
    expected = WEIGHTS[:, :, rows or slice(None), cols or slice(None)]
    np.testing.assert_array_equal(kept().weights(rows, cols), expected)
    mapped = Record(shape=(2, 3, 4, 5), map=WEIGHTS)
    np.testing.assert_array_equal(mapped.weights(rows, cols), expected)


@given(SLICES, SLICES)
def test_a_backend_is_asked_only_for_rectangles_that_exist(rows: slice | None, cols: slice | None) -> None:
    asked: list[slice] = []

    def rectangle(rows: slice, cols: slice) -> np.ndarray:
        asked.extend((rows, cols))
        return WEIGHTS[..., rows, cols]

    Record(shape=(2, 3, 4, 5), rectangle=rectangle).weights(rows, cols)
    for part, length in zip(asked, (4, 5), strict=True):
        assert part.step in (None, 1)
        assert 0 <= part.start <= part.stop <= length


@pytest.mark.parametrize("step", [2, -1, 0])
def test_a_step_is_refused(step: int) -> None:
    for arguments in ((slice(0, 4, step), None), (None, slice(0, 4, step))):
        with pytest.raises(ArgumentError) as caught:
            kept().weights(*arguments)
        assert caught.value.key == "rectangle-step"
    kept().weights(slice(0, 2, 1))


@pytest.mark.parametrize("part", [range(1, 3), range(2, 99), range(3, 1), range(2, -1), range(50, 60)])
def test_a_range_is_the_slice_of_the_same_positions(part: range) -> None:
    among = [position for position in part if position < 4]
    np.testing.assert_array_equal(kept().weights(rows=part), WEIGHTS[:, :, among])
    np.testing.assert_array_equal(kept().weights(cols=part), WEIGHTS[..., [at for at in part if at < 5]])


@pytest.mark.parametrize("part", [range(0, 4, 2), range(3, 0, -1), range(-2, 2), [1, 2], True])
def test_what_is_no_slice_and_no_range_from_0_up_is_refused(part: Any) -> None:
    with pytest.raises(ArgumentError, match=r"slices or ranges without a step, such as slice\(0, 64\)"):
        kept().weights(rows=part)


@pytest.mark.parametrize("row", [3, 0, -1, np.int64(-2)])
def test_a_whole_number_is_one_row_and_its_axis_goes(row: Any) -> None:
    """`weights(3)` is what anyone tries first; `weights(0)` must not mean everything."""
    np.testing.assert_array_equal(kept().weights(row), WEIGHTS[:, :, row])
    np.testing.assert_array_equal(kept().weights(rows=row, head=2), WEIGHTS[:, 2, row])
    np.testing.assert_array_equal(kept().weights(cols=row, head=-1), WEIGHTS[:, -1, :, row])
    np.testing.assert_array_equal(kept().weights(row, 4, 0), WEIGHTS[:, 0, row, 4])
    np.testing.assert_array_equal(kept().weights(slice(1, 3), range(2, 5), head=1), WEIGHTS[:, 1, 1:3, 2:5])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rows": 4}, "rows=4 .* 0 to 3"),
        ({"cols": -6}, "cols=-6 .* 0 to 4"),
        ({"head": 3}, "head=3 .* 0 to 2"),
        ({"head": "mean"}, "head='mean' .* 0 to 2"),
        ({"head": 1.5}, "head=1.5 .* 0 to 2"),
    ],
)
def test_what_is_not_there_names_what_is(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kept().weights(**asked)


def test_a_record_tells_whether_it_has_weights() -> None:
    coarse, exact = (Record(shape=(2, 3, 4, 5), map=np.zeros((2, 3, *size))) for size in ((2, 2), (4, 5)))
    assert [record.has_weights for record in (kept(), exact, coarse, Record(shape=(1, 1, 4, 5)))] == [1, 1, 0, 0]
    assert [record.map_is_exact for record in (kept(), exact, coarse)] == [0, 1, 0]


def test_what_was_not_kept_says_how_to_keep_it() -> None:
    for record in (Record(shape=(1, 1, 4, 5)), Record(shape=(1, 1, 4, 5), map=np.zeros((1, 1, 2, 2)))):
        with pytest.raises(NotKeptError, match="qk=True"):
            record.weights()


def test_a_small_map_is_the_weights() -> None:
    assert Record(shape=(2, 3, 4, 5), map=WEIGHTS).weights(slice(1, 2)).shape == (2, 3, 1, 5)


# --- names and tokens ------------------------------------------------------------------------------------


def test_another_name() -> None:
    record = kept(kind="cross").named("h.5.attn")
    assert (record.name, record.kind) == ("h.5.attn", "cross")
    assert record.named("x", "encoder").kind == "encoder"


def test_tokens_for_all_samples_or_each() -> None:
    record = kept().with_tokens(list("abcd"), [list("vwxyz"), list("VWXYZ")])
    assert record.queries == (("a", "b", "c", "d"),)
    assert record.keys == (tuple("vwxyz"), tuple("VWXYZ"))
    assert record.with_tokens(keys=list("12345")).queries == record.queries


@pytest.mark.parametrize(
    ("queries", "keys", "key"),
    [
        (list("abc"), None, "tokens-count"),
        (None, list("abcdef"), "tokens-count"),
        ([list("abcd")] * 3, None, "tokens-samples"),
        ([list("abcd"), list("abc")], None, "tokens-count"),
    ],
)
def test_tokens_that_do_not_fit(queries: Any, keys: Any, key: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        kept().with_tokens(queries, keys)
    assert caught.value.key == key


def test_tokens_of_nothing() -> None:
    record = Record(shape=(2, 1, 0, 3)).with_tokens([], ["a", "b", "c"])
    assert record.queries == ((),)


@pytest.mark.parametrize("tokens", [np.array(list("abcd")), tuple("abcd"), "abcd"], ids=["array", "tuple", "text"])
def test_tokens_in_any_sequence(tokens: Any) -> None:
    assert kept().with_tokens(tokens).queries == (("a", "b", "c", "d"),)


@pytest.mark.parametrize("ids", [[7, 8, 9, 10], np.arange(7, 11), torch.arange(7, 11), torch.arange(7, 11)[None]])
def test_ids_are_tokens_by_their_numbers(ids: Any) -> None:
    assert kept().with_tokens(ids).queries == (("7", "8", "9", "10"),)


def test_records_can_be_compared() -> None:
    """Two records with arrays: an answer, not numpy's complaint about ambiguous truth."""
    one, other = kept(map=WEIGHTS.copy()), kept(map=WEIGHTS.copy())
    assert (one == other) in (True, False)
    assert one == one


def test_a_record_is_told_in_one_line_without_its_arrays_functions() -> None:
    assert "rectangle" not in repr(kept())
    assert "kept" not in repr(kept())
