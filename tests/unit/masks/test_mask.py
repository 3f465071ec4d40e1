"""Mask as users use it: constructors, operators, printing, errors."""

import contextlib
import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.arrays import to_numpy
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.masks import Mask
from regard.masks.bound import And
from regard.masks.rules import Band

SQUARE = np.ones((3, 3), bool)


# --- meaning of each constructor -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "T", "S", "expected"),
    [
        (Mask.causal(), 3, 3, ["100", "110", "111"]),
        # T != S: the last query sees the last key.
        (Mask.causal(), 1, 4, ["1111"]),
        (Mask.causal(), 2, 4, ["1110", "1111"]),
        (Mask.causal(), 4, 2, ["00", "00", "10", "11"]),
        (Mask.window(1), 4, 4, ["1000", "1100", "0110", "0011"]),
        (Mask.window(1, 1), 2, 4, ["0111", "0011"]),
        (Mask.window(0, 0), 2, 2, ["10", "01"]),
        (Mask.window(None, None), 2, 2, ["11", "11"]),
        (Mask.prefix(2), 2, 3, ["110", "110"]),
        (Mask.prefix(0), 1, 3, ["000"]),
        (Mask.prefix(9), 1, 3, ["111"]),
        (Mask.causal() | Mask.prefix(2), 3, 3, ["110", "110", "111"]),
        (~Mask.causal(), 3, 3, ["011", "001", "000"]),
        (Mask.padding([5, 6, 0]), 2, 3, ["110", "110"]),
        (Mask.padding([5, 6, 9], pad=9), 1, 3, ["110"]),
        (Mask.segments([1, 1, 2]), 3, 3, ["110", "110", "001"]),
        (Mask.segments([1, 1, 2]), 1, 3, ["001"]),
        (Mask.segments([1, 1, 2], queries=[2, 1]), 2, 3, ["001", "110"]),
        (Mask.from_keep([1, 0]), 2, 2, ["10", "10"]),
        (Mask.from_blocked([[True, False]]), 1, 2, ["01"]),
        (Mask.from_blocked([1, 0], keys=True), 2, 2, ["01", "01"]),
        (Mask.from_additive([[0.0, -np.inf]]), 1, 2, ["10"]),
    ],
    ids=lambda value: repr(value) if isinstance(value, Mask) else None,
)
def test_meaning_of_each_constructor(mask: Mask, T: int, S: int, expected: list[str]) -> None:
    assert ["".join(str(int(x)) for x in row) for row in mask.dense(T, S)] == expected


def test_mask_per_sample_broadcasts_over_heads() -> None:
    ids = np.array([[3, 0], [3, 4]])
    assert Mask.padding(ids).dense(2, 2).shape == (2, 1, 2, 2)
    assert Mask.segments(ids).dense(2, 2).shape == (2, 1, 2, 2)
    assert Mask.from_keep(ids != 0).dense(2, 2).shape == (2, 1, 2, 2)
    assert (Mask.causal() & Mask.padding(ids)).dense(2, 2).shape == (2, 1, 2, 2)


def test_prefix_per_sample() -> None:
    visible = Mask.prefix(np.array([1, 3])).dense(2, 3)
    np.testing.assert_array_equal(visible[0, 0], [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(visible[1, 0], [[1, 1, 1], [1, 1, 1]])


def test_keep_mask_with_three_axes_is_one_per_sample() -> None:
    keep = np.array([np.eye(3), np.tri(3)])
    for lead in ((2, 4), (2,)):
        visible = Mask.from_keep(keep).bind(lead, 3, 3).block(slice(0, 3), slice(0, 3))
        np.testing.assert_array_equal(np.broadcast_to(visible, (2, 1, 3, 3))[:, 0], keep != 0)


# --- combining -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [np.eye(3, dtype=bool), torch.eye(3, dtype=torch.bool)], ids=["numpy", "torch"])
def test_array_combines_on_either_side(array: np.ndarray | torch.Tensor) -> None:
    visible = to_numpy(array)
    causal = np.tri(3, dtype=bool)
    for combined in (Mask.prefix(1) & array, array & Mask.prefix(1)):
        assert isinstance(combined, Mask)
        np.testing.assert_array_equal(combined.dense(3, 3), visible & [True, False, False])
    for combined in (Mask.causal() | array, array | Mask.causal()):
        assert isinstance(combined, Mask)
        np.testing.assert_array_equal(combined.dense(3, 3), causal | visible)


@pytest.mark.parametrize("other", [1, True, None, "causal", [[True]], 0.5])
def test_only_masks_and_arrays_combine(other: object) -> None:
    for combine in (lambda: Mask.causal() & other, lambda: Mask.causal() | other, lambda: other & Mask.causal()):
        with pytest.raises(DtypeError) as caught:
            combine()
        assert caught.value.key == "mask-combined"


def test_mask_has_no_truth_value() -> None:
    for use in (lambda: bool(Mask.causal()), lambda: Mask.causal() and SQUARE, lambda: not Mask.causal()):
        with pytest.raises(ArgumentError) as caught:
            use()
        assert caught.value.key == "mask-truth"


def test_parts_with_different_samples_are_refused() -> None:
    two, three = Mask.padding(np.ones((2, 3), int)), Mask.padding(np.ones((3, 3), int))
    with pytest.raises(ShapeError) as caught:
        (two & three).dense(3, 3)
    assert caught.value.key == "mask-parts"


POSITIONAL = st.recursive(
    st.builds(Mask.causal)
    | st.builds(Mask.window, st.none() | st.integers(0, 3), st.none() | st.integers(0, 3))
    | st.builds(Mask.prefix, st.integers(0, 4)),
    lambda inner: (
        st.builds(lambda a, b: a & b, inner, inner)
        | st.builds(lambda a, b: a | b, inner, inner)
        | st.builds(lambda a: ~a, inner)
    ),
    max_leaves=5,
)


@given(POSITIONAL)
def test_repr_evaluates_to_the_same_mask(mask: Mask) -> None:
    """Evaluating the repr gives the same mask, so brackets are where they must be."""
    again = eval(repr(mask), {"Mask": Mask})
    for T, S in ((5, 5), (3, 6), (6, 3)):
        np.testing.assert_array_equal(again.dense(T, S), mask.dense(T, S))


def test_two_bands_become_one() -> None:
    both = Mask.causal() & Mask.window(2, 5)
    assert isinstance(both.rule, Band)
    assert (both.rule.left, both.rule.right) == (2, 0)
    three = Mask.causal() & Mask.padding([1, 1]) & Mask.window(1, None)
    assert isinstance(three.rule, And)
    assert len(three.rule.rules) == 2


# --- a value ---------------------------------------------------------------------------------------------


def test_a_mask_can_be_copied_and_pickled() -> None:
    mask = Mask.causal() & Mask.padding([[1, 2, 0]]) | ~Mask.prefix(1)
    for other in (pickle.loads(pickle.dumps(mask)), copy.deepcopy(mask), copy.copy(mask)):
        assert repr(other) == repr(mask)
        np.testing.assert_array_equal(other.dense(3, 3), mask.dense(3, 3))


def test_mask_does_not_change_with_the_array_it_was_made_from() -> None:
    """A Mask is a value: reusing the buffer of ids for the next batch must not change it.

    (A T × S array given to `Mask.of` is not copied: rule 8 of the design forbids the memory.)
    """
    ids = np.array([1, 1])
    made = [Mask.padding(ids), Mask.from_keep(ids), Mask.segments(ids), Mask.prefix(ids)]
    before = [mask.bind((2,), 2, 2).block(slice(0, 2), slice(0, 2)) for mask in made]
    before = [np.array(visible) for visible in before]
    ids[...] = [0, 2]
    for mask, visible in zip(made, before, strict=True):
        now = mask.bind((2,), 2, 2).block(slice(0, 2), slice(0, 2))
        np.testing.assert_array_equal(now, visible, err_msg=repr(mask))


def test_arrays_of_a_mask_are_not_modified() -> None:
    ids = np.array([[1, 0, 2]])
    ids.flags.writeable = False
    mask = ~(Mask.padding(ids) & Mask.segments(ids) | Mask.prefix(ids[0, :1]))
    assert mask.dense(3, 3).shape[-2:] == (3, 3)


# --- blocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(0, 4, 2), slice(None, None, -1)], ids=["step 2", "backwards"])
def test_step_of_a_block_is_not_ignored(part: slice) -> None:
    expected = np.tri(4, dtype=bool)[part]
    try:
        visible = Mask.causal().dense(4, 4, rows=part)
    except RegardError:
        return
    np.testing.assert_array_equal(visible, expected)


def test_blocks_follow_numpy_slicing() -> None:
    full = np.tri(5, 7, 2, dtype=bool)
    for rows, cols in ((slice(-2, None), slice(None, -1)), (slice(1, 99), slice(3, 3)), (slice(4, 2), slice(0, 2))):
        np.testing.assert_array_equal(Mask.causal().dense(5, 7, rows=rows, cols=cols), full[rows, cols])


# --- printing --------------------------------------------------------------------------------------------


def test_printed_mask() -> None:
    assert str(Mask.causal() & Mask.padding([5, 5, 0])) == (
        "Mask.causal() & Mask.padding([3], pad=0)\n■ · ·\n■ ■ ·\n■ ■ ·"
    )


@pytest.mark.parametrize(
    "mask",
    [
        Mask.causal(),
        Mask.prefix([1, 2]),
        Mask.padding(np.zeros((2, 0), int)),
        Mask.padding(np.ones((5, 3), int)),
        Mask.of(np.zeros((0, 3), bool)),
        Mask.of(np.zeros((3, 0), bool)),
        Mask.of(np.ones((1, 3), bool)),
        Mask.of(np.ones((2, 1, 2, 3, 4), bool)),
        Mask.of(torch.ones(3, 3, dtype=torch.bool)),
        Mask.segments(torch.tensor([[1, 1, 2]])),
    ],
    ids=repr,
)
def test_every_mask_can_be_printed(mask: Mask) -> None:
    assert str(mask).startswith(repr(mask))


def test_repr_of_a_prefix_per_sample() -> None:
    assert repr(Mask.prefix(np.array([4, 4]))) != repr(Mask.prefix(2))


def test_printing_a_long_mask_allocates_little() -> None:
    """Only the corner is drawn, so only the corner is computed (rule 8): printing must not allocate T × S."""
    mask = Mask.causal() & Mask.padding(np.ones((1, 4096), np.int64))
    tracemalloc.start()
    text = str(mask)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "4096 × 4096" in text
    assert peak < 2**21, f"{peak} bytes for a picture of 32 × 32"


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "key"),
    [
        (lambda: Mask.window(-1), ArgumentError, "window-side"),
        (lambda: Mask.window(1, -1), ArgumentError, "window-side"),
        (lambda: Mask.window(True), ArgumentError, "window-side"),
        (lambda: Mask.window(1.0), ArgumentError, "window-side"),  # type: ignore[arg-type]
        (lambda: Mask.prefix(-1), ArgumentError, "prefix-negative"),
        (lambda: Mask.prefix(np.array([3, -1])), ArgumentError, "prefix-negative"),
        (lambda: Mask.prefix(1.5), DtypeError, "mask-ids-dtype"),
        (lambda: Mask.padding(np.ones((2, 3))), DtypeError, "mask-ids-dtype"),
        (lambda: Mask.padding(3), ShapeError, "mask-ids-shape"),
        (lambda: Mask.segments(torch.ones(3)), DtypeError, "mask-ids-dtype"),
        (lambda: Mask.segments([1, 2]).dense(3, 2), ShapeError, "segments-too-many-queries"),
        (lambda: Mask.segments([1, 2], [1]).dense(3, 2), ShapeError, "segments-length"),
        (lambda: Mask.padding([[1, 2]]).dense(2, 3), ShapeError, "mask-keys"),
        (lambda: Mask.padding(np.ones((2, 3), int)).bind((3, 4), 3, 3), ShapeError, "mask-samples"),
        (lambda: Mask.padding(np.ones((4, 3), int)).bind((3, 4), 3, 3), ShapeError, "mask-samples"),
        (lambda: Mask.of(np.ones((2, 3, 3), bool)).bind((2, 2), 3, 3), ShapeError, "mask-ambiguous"),
        (lambda: Mask.of(np.ones((1, 3, 3), bool)).bind((2, 2), 3, 3), ShapeError, "mask-ambiguous"),
        (lambda: Mask.of(np.ones((2, 3, 3), bool)).bind((), 3, 3), ShapeError, "mask-shape"),
        (lambda: Mask.of(np.ones((3, 4), bool)).bind((), 3, 3), ShapeError, "mask-shape"),
        (lambda: Mask.of(np.ones((2, 1, 3, 3), bool)).bind((2,), 3, 3), ShapeError, "mask-shape"),
        (lambda: Mask.of(np.ones(3, bool)), ShapeError, "mask-too-few-axes"),
    ],
)
def test_wrong_arguments_are_refused(make: object, error: type[Exception], key: str) -> None:
    with pytest.raises(error) as caught:
        make()  # type: ignore[operator]
    assert isinstance(caught.value, RegardError)
    assert caught.value.key == key
    for lang in ("en", "zh"):
        assert "{" not in caught.value.text(lang).replace("{}", "")


def test_missing_pad_id_is_refused() -> None:
    """Many tokenizers have pad_token_id None; comparing with None would mask nothing, silently."""
    for ids in (np.array([[1, 0]]), torch.tensor([[1, 0]])):
        with pytest.raises(RegardError):
            Mask.padding(ids, pad=None)  # type: ignore[arg-type]


def test_numpy_integers_are_accepted() -> None:
    assert repr(Mask.prefix(np.int64(2))) == "Mask.prefix(2)"
    assert repr(Mask.window(np.int64(2))) == "Mask.window(2, 0)"


def test_mask_with_too_few_axes_raises_no_foreign_error() -> None:
    for make in (lambda: Mask.of(np.ones(3, bool)), lambda: Mask.of(np.array(True)), lambda: Mask.from_blocked([1])):
        with contextlib.suppress(RegardError):
            str(make())


FLOATS = ["float16", "float32", "float64", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


def both_array_types(values: Any, dtype: str) -> list[Any]:
    """The values as an array and as a tensor; NumPy has no bfloat16."""
    tensor = torch.tensor(values, dtype=getattr(torch, dtype))
    return [tensor] if dtype == "bfloat16" else [np.array(values, dtype), tensor]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_raw_mask_is_refused_by_its_dtype_alone(dtype: str) -> None:
    """The values make no difference (all ones, all zeros, empty), and the error names the converter."""
    cases: list[list[list[int]]] = [[[1, 1]], [[0, 0]], [[]]]
    for values in cases:
        for raw in both_array_types(values, dtype):
            with pytest.raises(DtypeError) as caught:
                Mask.of(raw)
            assert dtype in str(caught.value)
            assert "Mask.from_keep" in str(caught.value)
            assert ("Mask.from_additive" if dtype in FLOATS else "Mask.from_blocked") in str(caught.value)


@pytest.mark.parametrize(
    "raw", [None, "causal", True, Mask.causal, object(), {}, np.array([["a"]]), np.ones((2, 2), complex)]
)
def test_values_that_are_no_mask_are_refused(raw: Any) -> None:
    with pytest.raises(DtypeError):
        Mask.of(raw)


def test_ragged_lists_raise_a_regard_error() -> None:
    with pytest.raises(RegardError):
        Mask.of([[True], [True, False]])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_zero_and_one_in_any_dtype(dtype: str) -> None:
    for raw in both_array_types([[1, 0]], dtype):
        np.testing.assert_array_equal(to_numpy(Mask.from_keep(raw).dense(1, 2)), [[[[True, False]]]])
        np.testing.assert_array_equal(to_numpy(Mask.from_blocked(raw).dense(1, 2)), [[False, True]])
        np.testing.assert_array_equal(to_numpy(Mask.from_blocked(raw, keys=True).dense(1, 2)), [[[[False, True]]]])


@pytest.mark.parametrize("other", [2.0, -1.0, 0.5, np.nan, -np.inf])
def test_values_other_than_zero_and_one_are_refused(other: float) -> None:
    for convert in (Mask.from_keep, Mask.from_blocked):
        for raw in both_array_types([[1.0, other]], "float32"):
            with pytest.raises(ArgumentError) as caught:
                convert(raw)
            assert caught.value.key == "mask-not-zero-one"
            assert str(caught.value.values["value"]) in str(caught.value)


@pytest.mark.parametrize("dtype", FLOATS)
def test_additive_masks_of_every_float(dtype: str) -> None:
    lowest = torch.finfo(getattr(torch, dtype)).min
    for hidden in (-np.inf, lowest):
        for raw in both_array_types([[0.0, hidden, -0.0]], dtype):
            np.testing.assert_array_equal(to_numpy(Mask.from_additive(raw).dense(1, 3)), [[True, False, True]])


def test_additive_mask_of_zeros_masks_nothing() -> None:
    assert Mask.from_additive(np.zeros((2, 2))).dense(2, 2).all()


@pytest.mark.parametrize("other", [1.0, -1.0, -1e4, -1e9, np.inf, np.nan, 1e-30])
def test_scores_are_refused_as_an_additive_mask(other: float) -> None:
    for raw in both_array_types([[0.0, other, -np.inf]], "float32"):
        with pytest.raises(ArgumentError) as caught:
            Mask.from_additive(raw)
        assert caught.value.key == "from-additive-values"
        assert "bias=" in str(caught.value)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_integers_are_refused_as_an_additive_mask(dtype: str) -> None:
    for raw in both_array_types([[1, 0]], dtype):
        with pytest.raises(DtypeError) as caught:
            Mask.from_additive(raw)
        assert caught.value.key == "from-additive-dtype"


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: Mask.from_blocked(np.ones((4, 3, 3), bool)), "from-blocked-3d"),
        (lambda: Mask.from_blocked(np.ones((4, 3, 3), bool), keys=True), "mask-one-row"),
        (lambda: Mask.from_additive(np.zeros(3)), "mask-too-few-axes"),
        (lambda: Mask.from_keep(np.array(1)), "mask-ids-shape"),
    ],
)
def test_shapes_that_no_converter_accepts(make: Any, key: str) -> None:
    with pytest.raises(ShapeError) as caught:
        make()
    assert caught.value.key == key


def test_float8_raises_no_foreign_error() -> None:
    raw = torch.zeros(2, 2).to(torch.float8_e4m3fn)
    for convert in (Mask.from_keep, Mask.from_blocked, Mask.from_additive):
        with contextlib.suppress(RegardError):
            convert(raw)
