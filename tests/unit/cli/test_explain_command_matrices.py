"""Matrices in option values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli.explain_command import read_mask, read_matrix
from regard.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 0; 0 1", [[1, 0], [0, 1]]),
        ("1,0;0,1;", [[1, 0], [0, 1]]),
        ("1，0；0、1", [[1, 0], [0, 1]]),
        ("１．５ －2", [[1.5, -2]]),
        ("−1e-3 +2", [[-0.001, 2]]),
        ("1 0\n0 1\n", [[1, 0], [0, 1]]),
        ("7", [[7]]),
        ("[[1, 0], [0.5, -1]]", [[1, 0], [0.5, -1]]),
        ("[[1. 0.]\n [0. 1.]]", [[1, 0], [0, 1]]),
    ],
)
def test_read_matrix(text: str, rows: list[list[float]]) -> None:
    assert read_matrix(text, "--q") == rows


@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3), min_size=1, max_size=4))
def test_numbers_are_read_exactly(rows: list[list[float]]) -> None:
    assert read_matrix("; ".join(" ".join(map(repr, row)) for row in rows), "--q") == rows


@pytest.mark.parametrize("text", ["", ";;", "1 0;;0 1", "1 0; 0", "1 O", "[[1, 0], [O, 1]]", "[[1, 0], [1]]"])
def test_errors_name_the_option(text: str) -> None:
    with pytest.raises(ArgumentError, match="--q"):
        read_matrix(text, "--q")


def test_masks_are_zero_and_one() -> None:
    assert read_mask("1 0; 1 1", "--mask") == [[True, False], [True, True]]
    with pytest.raises(ArgumentError, match="row 2"):
        read_mask("1 0; 0.5 1", "--mask")
