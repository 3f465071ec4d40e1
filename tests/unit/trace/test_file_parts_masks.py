"""A Mask that is written as a JSON tree and read again is the same mask."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import call_sizes, composed_masks

from regard import Mask
from regard.trace.file_parts import MaskTreeError, mask_of, mask_tree


def round_trip(mask: Mask) -> Mask:
    tree, arrays = mask_tree(mask)
    return mask_of(json.loads(json.dumps(tree)), lambda number: arrays[number])


@given(st.data())
def test_round_trip_keeps_the_mask(data: st.DataObject) -> None:
    sizes = data.draw(call_sizes())
    mask = Mask.of(data.draw(composed_masks(sizes)).mask)
    back = round_trip(mask)
    assert back.name == mask.name
    rows, cols = slice(0, sizes.T), slice(0, sizes.S)
    shape = (sizes.B, sizes.H, sizes.T, sizes.S)
    before, after = (m.bind(sizes.lead, sizes.T, sizes.S).block(rows, cols) for m in (mask, back))
    np.testing.assert_array_equal(np.broadcast_to(after, shape), np.broadcast_to(before, shape))


def test_or_does_not_become_and() -> None:
    mask = Mask.causal() | Mask.prefix(2) | ~Mask.window(1, 1)
    np.testing.assert_array_equal(round_trip(mask).dense(6, 6), mask.dense(6, 6))


@pytest.mark.parametrize("lead", [(2, 3), (2,)], ids=["heads", "no heads"])
def test_mask_per_sample_stays_per_sample(lead: tuple[int, ...]) -> None:
    mask = Mask.from_keep(np.array([np.tri(4), np.eye(4)]))
    whole = slice(0, 4)
    before, after = (m.bind(lead, 4, 4).block(whole, whole) for m in (mask, round_trip(mask)))
    np.testing.assert_array_equal(after, before)


def test_mask_of_tensors_is_read_as_numpy() -> None:
    mask = Mask.padding(torch.tensor([[1, 2, 0]])) & Mask.segments(torch.tensor([0, 0, 1]))
    assert round_trip(mask).dense(3, 3).tolist() == mask.dense(3, 3, like=torch.zeros(())).tolist()


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {},
        {"name": "m"},
        {"name": "m", "rule": {"is": "lambda"}},
        {"name": "m", "rule": {"is": "band", "left": "a", "right": 0}},
        {"name": "m", "rule": {"is": "band", "left": -1, "right": 0}},
        {"name": "m", "rule": {"is": "both", "rules": []}},
        {"name": "m", "rule": {"is": "not", "rule": 3}},
        {"name": "m", "rule": {"is": "keys"}},
        {"name": "m", "rule": {"is": "keys", "keep": 1}},
        {"name": "m", "rule": {"is": "dense", "allowed": 0}},
        {"name": 3, "rule": {"is": "band", "left": None, "right": 0}},
    ],
)
def test_invalid_tree_is_refused(tree: Any) -> None:
    arrays = [np.zeros(3, bool), np.zeros(3, int)]
    with pytest.raises(MaskTreeError):
        mask_of(tree, lambda number: arrays[number])
