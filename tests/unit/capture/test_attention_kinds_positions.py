"""The position of the first query: counted with a growing cache, unknown with unused positions."""

import pytest
import torch

from regard.capture.attention_kinds import Positions
from regard.records import Kind


@pytest.mark.parametrize(
    ("kind", "T", "S", "masked", "first"),
    [
        ("decoder", 5, 5, True, 0),
        ("decoder", 1, 9, False, 8),
        ("decoder", 3, 9, True, 6),
        ("self", 1, 9, False, 8),
        ("self", 3, 9, True, 6),
        ("self", 3, 9, False, 0),  # nothing masked and different sizes: another text
        ("encoder", 3, 9, True, 0),
        ("cross", 3, 9, True, 0),
        ("decoder", 9, 3, True, 0),
    ],
)
def test_one_call(kind: Kind, T: int, S: int, masked: bool, first: int) -> None:
    assert Positions().first(kind, T, S, masked=masked) == first


def test_cross_attention_has_the_positions_of_the_decoder() -> None:
    positions = Positions()
    assert positions.first("decoder", 2, 8) == 6
    assert positions.first("encoder", 20, 20) == 0
    assert positions.first("cross", 2, 20) == 6
    assert positions.first("cross", 3, 20) == 0  # different queries


@pytest.mark.parametrize("mask_or_scores", [torch.tensor([[True, True, False]]), torch.tensor([[0.5, 0.0, -1e4]])])
def test_unused_positions_in_the_cache(mask_or_scores: torch.Tensor) -> None:
    positions = Positions()
    assert positions.first("decoder", 1, 3, mask_or_scores) is None
    assert positions.first("cross", 1, 9) is None
    assert positions.first("decoder", 1, 2, mask_or_scores[:, :2]) == 1
