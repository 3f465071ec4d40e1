"""See requests what to keep; a Record returns exact rectangles of weights, or an error that names the fix."""

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
from regard.exact_weights import WeightsArray
from regard.records import Record, See

WEIGHTS = np.random.default_rng(0).random((2, 3, 4, 5))


def record_with_weights(**more: Any) -> Record:
    """A Record with exact weights."""
    return Record(shape=(2, 3, 4, 5), **{"exact": WeightsArray(WEIGHTS)} | more)


class OnGPU(WeightsArray):
    @property
    def arrays(self) -> tuple[Any, ...]:
        return ("on a GPU",)


def test_weights_must_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Free memory of a GPU, here a stub, is checked for Records on it."""
    monkeypatch.setattr(records, "CHECK_MEMORY_FROM", 10)
    monkeypatch.setattr(records, "free_gpu_bytes", lambda x: 200 if isinstance(x, str) and x == "on a GPU" else None)
    for place in ({"exact": OnGPU(WEIGHTS)}, {"lse": "on a GPU"}):
        record = record_with_weights(**place)
        assert record.weights(slice(0, 2), slice(0, 4)).shape == (2, 3, 2, 4)
        with pytest.raises(TooLargeError, match="need 480 B, and 200 B are free"):
            record.weights()
    assert record_with_weights(lse="elsewhere").weights().shape == (2, 3, 4, 5)


# --- See -------------------------------------------------------------------------------------------------


def test_defaults_request_a_map_and_the_lse() -> None:
    assert See() == See(map=256, lse=True, entropy=False, received=False, top=None, qk=False)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, False, "8", [8]])
@pytest.mark.parametrize("name", ["map", "top"])
def test_wrong_count_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        See(**{name: value})
    assert caught.value.key == "see-count"
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(See) if each.name not in ("map", "top")])
def test_wrong_switch_is_refused(name: str) -> None:
    values: tuple[Any, ...] = ("yes", 1, None, np.array([True]))
    for value in values:
        with pytest.raises(ArgumentError) as caught:
            See(**{name: value})
        assert str(caught.value) == f"See({name}=…) must be True or False; found {value!r}"
    numpys: dict[str, Any] = {"qk": True, name: np.bool_(True)}  # v needs q and k
    assert getattr(See(**numpys), name)


def test_numpy_integers_are_counts() -> None:
    assert See(top=np.int64(3)).top == 3  # type: ignore[arg-type]


def test_fused_and_differentiable_request_no_statistics() -> None:
    see = See(map=None, lse=False, sink=False, fused=True, differentiable=True)
    assert see.is_empty
    assert See(fused=True) != See()
    assert pickle.loads(pickle.dumps(see)) == see
    assert dataclasses.replace(see, fused=False, differentiable=False) == See(map=None, lse=False, sink=False)


def test_repr_shows_fused() -> None:
    assert ", fused, holds: qk)" in repr(record_with_weights(fused=True))
    assert "fused" not in repr(record_with_weights())


def test_see_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        See().map = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        See(32)  # type: ignore[call-arg]


# --- weights ---------------------------------------------------------------------------------------------

SLICES = st.none() | st.builds(slice, st.none() | st.integers(-7, 7), st.none() | st.integers(-7, 7))


@given(SLICES, SLICES)
def test_rectangle_equals_slicing(rows: slice | None, cols: slice | None) -> None:
    expected = WEIGHTS[:, :, rows or slice(None), cols or slice(None)]
    np.testing.assert_array_equal(record_with_weights().weights(rows, cols), expected)
    mapped = Record(shape=(2, 3, 4, 5), map=WEIGHTS)
    np.testing.assert_array_equal(mapped.weights(rows, cols), expected)


@given(SLICES, SLICES)
def test_backend_gets_only_valid_rectangles(rows: slice | None, cols: slice | None) -> None:
    requested: list[slice] = []

    class Noted(WeightsArray):
        def block(self, rows: slice, cols: slice) -> np.ndarray:
            requested.extend((rows, cols))
            return WEIGHTS[..., rows, cols]

    Record(shape=(2, 3, 4, 5), exact=Noted(WEIGHTS)).weights(rows, cols)
    for part, length in zip(requested, (4, 5), strict=True):
        assert part.step in (None, 1)
        assert 0 <= part.start <= part.stop <= length


@pytest.mark.parametrize("step", [2, -1, 0])
def test_slice_with_a_step_is_refused(step: int) -> None:
    for arguments in ((slice(0, 4, step), None), (None, slice(0, 4, step))):
        with pytest.raises(ArgumentError) as caught:
            record_with_weights().weights(*arguments)
        assert caught.value.key == "rectangle-step"
    record_with_weights().weights(slice(0, 2, 1))


@pytest.mark.parametrize("part", [range(1, 3), range(2, 99), range(3, 1), range(2, -1), range(50, 60)])
def test_range_equals_the_slice_of_the_same_positions(part: range) -> None:
    among = [position for position in part if position < 4]
    np.testing.assert_array_equal(record_with_weights().weights(rows=part), WEIGHTS[:, :, among])
    np.testing.assert_array_equal(record_with_weights().weights(cols=part), WEIGHTS[..., [at for at in part if at < 5]])


@pytest.mark.parametrize("part", [range(0, 4, 2), range(3, 0, -1), range(-2, 2), [1, 2], True])
def test_other_positions_are_refused(part: Any) -> None:
    with pytest.raises(ArgumentError, match=r"slices or ranges without a step, such as slice\(0, 64\)"):
        record_with_weights().weights(rows=part)


@pytest.mark.parametrize("row", [3, 0, -1, np.int64(-2)])
def test_integer_selects_one_position_and_removes_its_axis(row: Any) -> None:
    """`weights(3)` is the first thing that users try; `weights(0)` must not mean everything."""
    np.testing.assert_array_equal(record_with_weights().weights(row), WEIGHTS[:, :, row])
    np.testing.assert_array_equal(record_with_weights().weights(rows=row, head=2), WEIGHTS[:, 2, row])
    np.testing.assert_array_equal(record_with_weights().weights(cols=row, head=-1), WEIGHTS[:, -1, :, row])
    np.testing.assert_array_equal(record_with_weights().weights(row, 4, 0), WEIGHTS[:, 0, row, 4])
    np.testing.assert_array_equal(
        record_with_weights().weights(slice(1, 3), range(2, 5), head=1), WEIGHTS[:, 1, 1:3, 2:5]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 4}, "rows=4 .* 0 to 3"),
        ({"cols": -6}, "cols=-6 .* 0 to 4"),
        ({"head": 3}, "head=3 .* 0 to 2"),
        ({"head": "mean"}, "head='mean' .* 0 to 2"),
        ({"head": 1.5}, "head=1.5 .* 0 to 2"),
    ],
)
def test_index_out_of_range_names_the_range(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        record_with_weights().weights(**arguments)


def test_has_weights_and_map_is_exact() -> None:
    coarse, exact = (Record(shape=(2, 3, 4, 5), map=np.zeros((2, 3, *size))) for size in ((2, 2), (4, 5)))
    assert [record.has_weights for record in (record_with_weights(), exact, coarse, Record(shape=(1, 1, 4, 5)))] == [
        1,
        1,
        0,
        0,
    ]
    assert [record.map_is_exact for record in (record_with_weights(), exact, coarse)] == [0, 1, 0]


def test_error_for_weights_that_were_not_kept_names_the_fix() -> None:
    for record in (Record(shape=(1, 1, 4, 5)), Record(shape=(1, 1, 4, 5), map=np.zeros((1, 1, 2, 2)))):
        with pytest.raises(NotKeptError, match="qk=True"):
            record.weights()


def test_map_with_one_bin_per_weight_gives_weights() -> None:
    assert Record(shape=(2, 3, 4, 5), map=WEIGHTS).weights(slice(1, 2)).shape == (2, 3, 1, 5)


# --- names and tokens ------------------------------------------------------------------------------------


def test_named_changes_name_and_kind() -> None:
    record = record_with_weights(kind="cross").named("h.5.attn")
    assert (record.name, record.kind) == ("h.5.attn", "cross")
    assert record.named("x", "encoder").kind == "encoder"


def test_tokens_for_all_samples_or_for_each() -> None:
    record = record_with_weights().with_tokens(list("abcd"), [list("vwxyz"), list("VWXYZ")])
    assert record.query_tokens == (("a", "b", "c", "d"),)
    assert record.key_tokens == (tuple("vwxyz"), tuple("VWXYZ"))
    assert record.with_tokens(keys=list("12345")).query_tokens == record.query_tokens


@pytest.mark.parametrize(
    ("queries", "keys", "key"),
    [
        (list("abc"), None, "tokens-count"),
        (None, list("abcdef"), "tokens-count"),
        ([list("abcd")] * 3, None, "tokens-samples"),
        ([list("abcd"), list("abc")], None, "tokens-count"),
    ],
)
def test_tokens_that_do_not_fit_are_refused(queries: Any, keys: Any, key: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        record_with_weights().with_tokens(queries, keys)
    assert caught.value.key == key


def test_tokens_of_an_empty_text() -> None:
    record = Record(shape=(2, 1, 0, 3)).with_tokens([], ["a", "b", "c"])
    assert record.query_tokens == ((),)


@pytest.mark.parametrize("tokens", [np.array(list("abcd")), tuple("abcd"), "abcd"], ids=["array", "tuple", "text"])
def test_tokens_from_any_sequence(tokens: Any) -> None:
    assert record_with_weights().with_tokens(tokens).query_tokens == (("a", "b", "c", "d"),)


@pytest.mark.parametrize("ids", [[7, 8, 9, 10], np.arange(7, 11), torch.arange(7, 11), torch.arange(7, 11)[None]])
def test_ids_become_tokens(ids: Any) -> None:
    assert record_with_weights().with_tokens(ids).query_tokens == (("7", "8", "9", "10"),)


def test_records_can_be_compared() -> None:
    """Comparing two records with arrays must not raise NumPy's error about ambiguous truth values."""
    one, other = record_with_weights(map=WEIGHTS.copy()), record_with_weights(map=WEIGHTS.copy())
    assert (one == other) in (True, False)
    assert one == one


def test_repr_omits_functions_and_kept_arrays() -> None:
    assert "exact" not in repr(record_with_weights())
