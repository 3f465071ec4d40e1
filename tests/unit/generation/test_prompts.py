"""Parsing of prompts in all accepted types, and error messages with value, limit and fix."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError
from regard.generation.prompts import PromptRows, left_padded, parse_prompts, right_padded, special_ids
from regard.messages import use_language

ragged = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), min_size=1, max_size=5)


@pytest.mark.parametrize(
    "given",
    [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), np.array([1, 2], np.uint8), torch.tensor([1, 2]), [np.int32(1), 2]],
)
def test_one_flat_prompt(given: Any) -> None:
    assert parse_prompts(given) == PromptRows([[1, 2]], is_single=True)


@pytest.mark.parametrize(
    "given",
    [[[1, 2], [3, 4]], ((1, 2), (3, 4)), np.array([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 4]]),
     [np.array([1, 2]), torch.tensor([3, 4])]],
)  # fmt: skip
def test_several_prompts(given: Any) -> None:
    assert parse_prompts(given) == PromptRows([[1, 2], [3, 4]], is_single=False)


@given(ragged)
def test_padding_keeps_the_ids(rows: list[list[int]]) -> None:
    for padded, at_end in ((left_padded, True), (right_padded, False)):
        ids, keep = padded(rows)
        assert ids.shape == (len(rows), max(map(len, rows)))
        if keep is None:
            assert len({len(row) for row in rows}) == 1
            keep = np.ones(ids.shape, bool)
        assert [row[k].tolist() for row, k in zip(ids, keep, strict=True)] == rows
        assert not at_end or keep[:, -1].all()
        assert at_end or keep[:, 0].all()
        assert not ids[~keep].any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"prompts is empty.*start token"),
        ([[1], []], r"prompts\[1\] is empty"),
        (np.zeros((2, 0), int), r"prompts\[0\] is empty"),
        ("hello", r"prompts must be token ids.*found 'hello'.*tokenizer"),
        (["hello", "you"], r"prompts\[0\] must be .*found 'hello'"),
        (3, r"found 3"),
        (None, r"found None"),
        ([1, 2.5], r"prompts\[0\] must be"),
        ([[1, 2.5]], r"prompts\[0\]\[1\] must be .*found 2.5"),
        ([[True]], r"prompts\[0\]\[0\] must be .*found True"),
        (np.array([1.0]), r"found float64 \(1,\)"),
        (torch.ones(1, 1, 1, dtype=torch.long), r"found int64 \(1, 1, 1\)"),
        ([[[1]]], r"prompts\[0\]\[0\] must be .*found \[1\]"),
    ],
)
def test_invalid_prompts_raise(given: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_prompts(given)


def test_special_ids_of_all_types() -> None:
    assert special_ids(None, "eos", 5) == ()
    assert special_ids(4, "eos", 5) == (4,)
    assert special_ids([1, np.int64(2)], "eos", 5) == (1, 2)
    assert special_ids(torch.tensor([1, 2]), "eos", 5) == special_ids({1: 0, 2: 0}, "eos", 5) == (1, 2)
    assert special_ids(torch.tensor(3), "eos", 5) == (3,)


def test_message_in_chinese() -> None:
    with use_language("zh"), pytest.raises(ArgumentError, match="起始词元"):
        parse_prompts([])
