"""Weights of any shape arranged as B H T S."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from regard.capture.layouts import by_heads, heads_of


def module(**attributes: object) -> nn.Module:
    made = nn.Identity()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("name", ["num_heads", "n_heads", "n_head", "nhead", "heads", "num_attention_heads"])
def test_attribute_names_of_head_counts(name: str) -> None:
    assert heads_of(module(**{name: 3})) == 3
    assert heads_of(module(config=SimpleNamespace(**{name: 3}))) == 3


def test_other_attributes_are_not_head_counts() -> None:
    assert heads_of(module(heads=nn.ModuleList())) is None
    assert heads_of(module(num_heads=0)) is None


@pytest.mark.parametrize(
    ("shape", "heads", "expected"),
    [
        ((4, 5), None, (1, 1)),
        ((4, 5), 3, (1, 1)),
        ((6, 4, 5), None, (6, 1)),
        ((6, 4, 5), 3, (2, 3)),
        ((7, 4, 5), 3, (7, 1)),
        ((2, 6, 4, 5), 3, (2, 6)),
        ((2, 3, 2, 4, 5), 6, (2, 6)),  # grouped
        ((2, 9, 3, 4, 5), 3, (18, 3)),  # windows
        ((2, 9, 3, 4, 5), None, (18, 3)),
        ((2, 3, 9, 4, 5), 3, (18, 3)),  # windows after heads
        ((0, 4, 5), 3, (0, 3)),
    ],
)
def test_axes_before_the_positions(shape: tuple[int, ...], heads: int | None, expected: tuple[int, int]) -> None:
    made = by_heads(torch.zeros(shape), module(num_heads=heads))
    assert made.shape == (*expected, *shape[-2:])


def test_order_of_heads_is_kept() -> None:
    weights = torch.randn(6, 4, 5)
    assert by_heads(weights, module(heads=3))[1, 2].equal(weights[5])
    windows = torch.randn(2, 3, 9, 4, 5)
    assert by_heads(windows, module(heads=3))[9 + 4, 2].equal(windows[1, 2, 4])
