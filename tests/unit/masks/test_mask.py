"""Mask as people use it: made by name, combined, printed, refused."""

import contextlib
import copy
import pickle
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.arrays import to_numpy
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.masks import Mask

SQUARE = np.ones((3, 3), bool)


# --- meanings, written out ------------------------------------------------------------------------------


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
def test_what_each_name_means(mask: Mask, T: int, S: int, expected: list[str]) -> None:
    assert ["".join(str(int(x)) for x in row) for row in mask.dense(T, S)] == expected


def test_something_per_sample_is_ready_for_heads() -> None:
    ids = np.array([[3, 0], [3, 4]])
    assert Mask.padding(ids).dense(2, 2).shape == (2, 1, 2, 2)
    assert Mask.segments(ids).dense(2, 2).shape == (2, 1, 2, 2)
    assert Mask.from_keep(ids != 0).dense(2, 2).shape == (2, 1, 2, 2)
    assert (Mask.causal() & Mask.padding(ids)).dense(2, 2).shape == (2, 1, 2, 2)


def test_a_prefix_per_sample() -> None:
    seen = Mask.prefix(np.array([1, 3])).dense(2, 3)
    np.testing.assert_array_equal(seen[0, 0], [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(seen[1, 0], [[1, 1, 1], [1, 1, 1]])


def test_a_keep_mask_of_three_axes_is_one_per_sample_with_heads_and_without() -> None:
    keep = np.array([np.eye(3), np.tri(3)])
    for lead in ((2, 4), (2,)):
        seen = Mask.from_keep(keep).bind(lead, 3, 3).block(slice(0, 3), slice(0, 3))
        np.testing.assert_array_equal(np.broadcast_to(seen, (2, 1, 3, 3))[:, 0], keep != 0)


# --- combining -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [np.eye(3, dtype=bool), torch.eye(3, dtype=torch.bool)], ids=["numpy", "torch"])
def test_an_array_combines_from_both_sides(array: np.ndarray | torch.Tensor) -> None:
    seen = to_numpy(array)
    causal = np.tri(3, dtype=bool)
    for combined in (Mask.prefix(1) & array, array & Mask.prefix(1)):
        assert isinstance(combined, Mask)
        np.testing.assert_array_equal(combined.dense(3, 3), seen & [True, False, False])
    for combined in (Mask.causal() | array, array | Mask.causal()):
        assert isinstance(combined, Mask)
        np.testing.assert_array_equal(combined.dense(3, 3), causal | seen)


@pytest.mark.parametrize("other", [1, True, None, "causal", [[True]], 0.5])
def test_only_masks_and_arrays_combine(other: object) -> None:
    for combine in (lambda: Mask.causal() & other, lambda: Mask.causal() | other, lambda: other & Mask.causal()):
        with pytest.raises(DtypeError) as caught:
            combine()
        assert caught.value.key == "mask-combined"


def test_a_mask_has_no_truth() -> None:
    for ask in (lambda: bool(Mask.causal()), lambda: Mask.causal() and SQUARE, lambda: not Mask.causal()):
        with pytest.raises(ArgumentError) as caught:
            ask()
        assert caught.value.key == "mask-truth"


def test_parts_that_do_not_fit_together_say_so() -> None:
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
def test_a_name_can_be_typed_in_again(mask: Mask) -> None:
    """Brackets stand where they must: the name means the mask."""
    again = eval(repr(mask), {"Mask": Mask})
    for T, S in ((5, 5), (3, 6), (6, 3)):
        np.testing.assert_array_equal(again.dense(T, S), mask.dense(T, S))


def test_two_bands_become_one() -> None:
    both = Mask.causal() & Mask.window(2, 5)
    assert (both.rule.left, both.rule.right) == (2, 0)
    three = Mask.causal() & Mask.padding([1, 1]) & Mask.window(1, None)
    assert len(three.rule.rules) == 2


# --- a value ---------------------------------------------------------------------------------------------


def test_a_mask_can_be_copied_and_pickled() -> None:
    mask = Mask.causal() & Mask.padding([[1, 2, 0]]) | ~Mask.prefix(1)
    for twin in (pickle.loads(pickle.dumps(mask)), copy.deepcopy(mask), copy.copy(mask)):
        assert repr(twin) == repr(mask)
        np.testing.assert_array_equal(twin.dense(3, 3), mask.dense(3, 3))


def test_a_mask_does_not_change_with_the_array_it_was_made_of() -> None:
    """A Mask is a value; a buffer of ids that is filled anew for the next batch must not reach into it.

    (A T × S array given to `Mask.of` is not copied, and need not be: that would cost what rule 8 forbids.)
    """
    ids = np.array([1, 1])
    made = [Mask.padding(ids), Mask.from_keep(ids), Mask.segments(ids), Mask.prefix(ids)]
    before = [mask.bind((2,), 2, 2).block(slice(0, 2), slice(0, 2)) for mask in made]
    before = [np.array(seen) for seen in before]
    ids[...] = [0, 2]
    for mask, seen in zip(made, before, strict=True):
        now = mask.bind((2,), 2, 2).block(slice(0, 2), slice(0, 2))
        np.testing.assert_array_equal(now, seen, err_msg=repr(mask))


def test_an_array_is_not_written_to() -> None:
    ids = np.array([[1, 0, 2]])
    ids.flags.writeable = False
    mask = ~(Mask.padding(ids) & Mask.segments(ids) | Mask.prefix(ids[0, :1]))
    assert mask.dense(3, 3).shape[-2:] == (3, 3)


# --- blocks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(0, 4, 2), slice(None, None, -1)], ids=["step 2", "backwards"])
def test_a_block_with_a_step_is_not_answered_as_if_it_had_none(part: slice) -> None:
    expected = np.tri(4, dtype=bool)[part]
    try:
        seen = Mask.causal().dense(4, 4, rows=part)
    except RegardError:
        return
    np.testing.assert_array_equal(seen, expected)


def test_blocks_count_as_slices_do() -> None:
    full = np.tri(5, 7, 2, dtype=bool)
    for rows, cols in ((slice(-2, None), slice(None, -1)), (slice(1, 99), slice(3, 3)), (slice(4, 2), slice(0, 2))):
        np.testing.assert_array_equal(Mask.causal().dense(5, 7, rows=rows, cols=cols), full[rows, cols])


# --- printing --------------------------------------------------------------------------------------------


def test_the_picture_in_full() -> None:
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


def test_a_prefix_per_sample_is_not_printed_as_a_single_number() -> None:
    assert repr(Mask.prefix(np.array([4, 4]))) != repr(Mask.prefix(2))


def test_a_picture_of_a_long_mask_is_cheap() -> None:
    """Only the corner is drawn, so only the corner is made (rule 8): printing must not allocate T × S."""
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
def test_refusals(make: object, error: type[Exception], key: str) -> None:
    with pytest.raises(error) as caught:
        make()  # type: ignore[operator]
    assert isinstance(caught.value, RegardError)
    assert caught.value.key == key
    for lang in ("en", "zh"):
        assert "{" not in caught.value.text(lang).replace("{}", "")


def test_a_pad_id_that_is_missing_is_refused() -> None:
    """Many tokenizers have pad_token_id None; comparing with None would hide nothing, silently."""
    for ids in (np.array([[1, 0]]), torch.tensor([[1, 0]])):
        with pytest.raises(RegardError):
            Mask.padding(ids, pad=None)  # type: ignore[arg-type]


def test_numbers_from_numpy_count_as_numbers() -> None:
    assert repr(Mask.prefix(np.int64(2))) == "Mask.prefix(2)"
    assert repr(Mask.window(np.int64(2))) == "Mask.window(2, 0)"


def test_a_mask_with_too_few_axes_is_refused_or_printed_but_never_breaks() -> None:
    for make in (lambda: Mask.of(np.ones(3, bool)), lambda: Mask.of(np.array(True)), lambda: Mask.from_blocked([1])):
        with contextlib.suppress(RegardError):
            str(make())
