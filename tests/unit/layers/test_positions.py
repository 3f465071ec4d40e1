"""Five kinds of positions with one interface: each adds, rotates or biases, and does nothing else."""

from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_close, assert_same_bits
from torch import Tensor

from regard import reference
from regard.arrays import to_numpy
from regard.config import LinearScaling
from regard.errors import RegardError, ShapeError
from regard.layers import (
    AlibiPositions,
    LearnedPositions,
    NoPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)

D, H, E, T = 8, 2, 4, 5
PLACES = torch.tensor([3, 0, 1, 7, 7])
PER_SAMPLE = torch.stack([PLACES, PLACES.flip(0)])

KINDS: dict[str, NoPositions] = {
    "none": NoPositions(),
    "sinusoidal": SinusoidalPositions(D),
    "learned": LearnedPositions(9, D).double(),
    "rotary": RotaryPositions(E),
    "alibi": AlibiPositions(H),
    "relative": RelativePositions(H, n_buckets=8, max_distance=6).double(),
}
ADD, ROTATE, BIAS = {"sinusoidal", "learned"}, {"rotary"}, {"alibi", "relative"}


def vectors(*shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_does_one_of_three_things(name: str) -> None:
    kind, x = KINDS[name], vectors(2, T, D)
    assert torch.equal(kind.add_to(x, PLACES), x) == (name not in ADD)
    assert (kind.rotation(PLACES, like=x) is None) == (name not in ROTATE)
    assert (kind.bias(PLACES, PLACES, like=x) is None) == (name not in BIAS)


@pytest.mark.parametrize("name", sorted(ADD))
def test_added_positions_may_differ_by_sample(name: str) -> None:
    kind, x = KINDS[name], vectors(2, T, D)
    added = kind.add_to(x, PER_SAMPLE).detach()
    for i in range(2):
        assert_same_bits(added[i], kind.add_to(x[i : i + 1], PER_SAMPLE[i])[0].detach())
    assert_same_bits(kind(x).detach(), kind.add_to(x, torch.arange(T)).detach())


@pytest.mark.parametrize("pairing", ["pairs", "halves"])
def test_sinusoidal(pairing: Any) -> None:
    kind, x = SinusoidalPositions(D, 100.0, pairing), vectors(2, T, D)
    expected = to_numpy(x) + reference.sinusoidal_at(to_numpy(PLACES), D, 100.0, pairing)
    assert_close(kind.add_to(x, PLACES), expected)
    assert not list(kind.parameters())


def test_learned() -> None:
    kind = LearnedPositions(9, D)
    assert_same_bits(kind.add_to(torch.zeros(1, T, D), PLACES)[0].detach(), kind.table[PLACES].detach())
    kind.add_to(torch.zeros(1, T, D), PLACES).sum().backward()
    assert kind.table.grad is not None
    assert kind.table.grad[:, 0].tolist() == [1, 1, 0, 1, 0, 0, 0, 2, 0]


def test_learned_positions_are_limited() -> None:
    with pytest.raises(RegardError, match=r"position 9 is outside the table.*max_len=9"):
        LearnedPositions(9, D)(torch.zeros(1, 10, D))


@pytest.mark.parametrize("pairing", ["pairs", "halves"])
def test_rotary(pairing: Any) -> None:
    scaling = LinearScaling(factor=2.0)
    kind, q = RotaryPositions(E, 100.0, pairing, scaling), vectors(2, H, T, E)
    rotated = kind.rotation(PER_SAMPLE, like=q)(q)
    for i in range(2):
        expected = reference.rotate(to_numpy(q[i]), to_numpy(PER_SAMPLE[i]), 100.0, pairing, scaling=scaling)
        assert_close(rotated[i], expected)
    assert_close(kind(q), kind.rotation(torch.arange(T), like=q)(q))


@pytest.mark.parametrize("pairing", ["pairs", "halves"])
def test_a_part_of_each_head_is_rotated(pairing: Any) -> None:
    kind, q = RotaryPositions(10, 100.0, pairing, width=4), vectors(2, H, T, 10)
    rotated = kind(q)
    assert_same_bits(rotated[..., 4:], q[..., 4:])
    assert_close(rotated[..., :4], reference.rotate(to_numpy(q[..., :4]), np.arange(T), 100.0, pairing))


def test_alibi_and_relative_bias() -> None:
    alibi, relative = KINDS["alibi"], KINDS["relative"]
    assert isinstance(relative, RelativePositions)
    queries, keys, like = torch.arange(3, 5), torch.arange(5), torch.zeros(1, dtype=torch.float64)
    assert_close(alibi.bias(queries, keys, like)[0], reference.alibi_bias(H, 2, 5))  # type: ignore[index]
    table = to_numpy(relative.table.detach())
    expected = reference.relative_bias(table, 2, 5, max_distance=6)
    assert_close(relative.bias(queries, keys, like)[0].detach(), expected)
    one_way = RelativePositions(H, 8, 6, bidirectional=False).double()
    one_way.table = relative.table
    expected = reference.relative_bias(table, 2, 5, max_distance=6, bidirectional=False)
    assert_close(one_way.bias(queries, keys, like)[0].detach(), expected)


def test_rotary_errors() -> None:
    rotary = RotaryPositions(E)
    for x in (torch.zeros(1, 2, 3, 1), torch.zeros(1, 2, 3, E + 2)):
        with pytest.raises(ShapeError, match="rotations"):
            rotary(x)
    with pytest.raises(ShapeError, match="rotations"):
        rotary(torch.zeros(1, 2, 3, E), torch.arange(1))
    assert rotary(torch.ones(1, 1, 2, E, dtype=torch.long)).is_floating_point()
