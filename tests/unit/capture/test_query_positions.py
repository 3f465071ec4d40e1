"""Where the first query stands: counted with a growing cache, refused with one that has empty room."""

import pytest
import torch

from regard.capture.query_positions import Positions
from regard.records import Kind


@pytest.mark.parametrize(
    ("kind", "T", "S", "masked", "first"),
    [
        ("decoder", 5, 5, True, 0),
        ("decoder", 1, 9, False, 8),
        ("decoder", 3, 9, True, 6),
        ("self", 1, 9, False, 8),
        ("self", 3, 9, True, 6),
        ("self", 3, 9, False, 0),  # nothing hidden and other sizes: another text
        ("encoder", 3, 9, True, 0),
        ("cross", 3, 9, True, 0),
        ("decoder", 9, 3, True, 0),
    ],
)
def test_one_call(kind: Kind, T: int, S: int, masked: bool, first: int) -> None:
    assert Positions().first(kind, T, S, masked=masked) == first


def test_cross_attention_stands_where_the_decoder_stood() -> None:
    positions = Positions()
    assert positions.first("decoder", 2, 8) == 6
    assert positions.first("encoder", 20, 20) == 0
    assert positions.first("cross", 2, 20) == 6
    assert positions.first("cross", 3, 20) == 0  # not the same queries


@pytest.mark.parametrize("hiding", [torch.tensor([[True, True, False]]), torch.tensor([[0.5, 0.0, -1e4]])])
def test_empty_room_in_the_cache(hiding: torch.Tensor) -> None:
    positions = Positions()
    assert positions.first("decoder", 1, 3, hiding) is None
    assert positions.first("cross", 1, 9) is None
    assert positions.first("decoder", 1, 2, hiding[:, :2]) == 1
