"""Masks of other conventions: valid ones are converted, wrong ones raise an error that names the right converter."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch

from regard.arrays import to_numpy
from regard.errors import ArgumentError, DtypeError, RegardError, ShapeError
from regard.masks import Mask

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
