"""What is counted beforehand is what the kernels take: their own scratch, strips and pieces, looked at as they run."""

from typing import Any

import pytest
import torch
from torch import Tensor

from kernel_calls import tensors
from regard import See
from regard.kernels.tiles import Bins
from regard.kernels.triton import forward_launch, key_sums
from regard.kernels.triton.attention import attention
from regard.kernels.triton.hopper.config import ROWS
from regard.kernels.triton.observe import observe
from regard.kernels.triton.pooling import strips_of_head
from regard.kernels.triton.support import scratch_for
from regard.kernels.triton.tile_sizes import blocks_for

SIZES = [(20, 30, 3), (20, 300, 2), (20, 256, 1), (5, 131, 131)]
"""Queries, keys, and bins at most: of which a tile touches some, two, one, many."""


def noted(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, sizes: list[int]) -> None:
    make = getattr(where, name)

    def made(*fields: Any) -> Any:
        sizes.append(sum(x.nbytes for x in fields if isinstance(x, Tensor)))
        return make(*fields)

    monkeypatch.setattr(where, name, made)


@pytest.mark.parametrize(("T", "S", "most"), SIZES)
def test_a_walk_that_comes_later(T: int, S: int, most: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, _ = (x.to(device) for x in tensors(T, S))
    see, sizes = See(map=most, sink=False), []
    lse = (q.double() @ k.double().mT / 4).logsumexp(-1)
    noted(monkeypatch, key_sums, "Pieces", sizes)
    observe(q, k, lse, scale=0.25, see=see)
    least = scratch_for(q, k, see)
    assert scratch_for(q, k, see, later=True) == max(least, *sizes)
    assert len(sizes) == 1


@pytest.mark.parametrize("most", [7, 30])
def test_the_pass_that_computes(most: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room that is not counted, it takes twice the map at most, or what one head needs."""
    q, k, v = (x.to(device) for x in tensors(30, 30, H=12))
    see, sizes = See(map=most, sink=False), []
    monkeypatch.setattr(forward_launch, "ROOM", 0)
    noted(monkeypatch, forward_launch, "Pool", sizes)
    _, found = attention(q, k, v, scale=0.25, see=see)
    assert found.map is not None
    assert scratch_for(q, k, see) == 2 * found.map.nbytes
    blocks, C = blocks_for(q.dtype, 16, 30, 30), found.map.shape[-1]
    bins = Bins.of(30, 30, see)
    assert bins is not None
    one_program, one_head = 4 * blocks.rows * C, 4 * strips_of_head(30, bins, blocks.rows) * C
    assert max(sizes) <= max(found.map.nbytes, one_program) + max(found.map.nbytes, one_head)


def test_without_a_map_there_is_nothing() -> None:
    q, k, _ = tensors(20, 30)
    assert scratch_for(q, k, None) == scratch_for(q, k, See(map=None, received=True), later=True) == 0


def test_strips_of_a_long_head_are_counted() -> None:
    """A map of few rows, of queries without end: it is tiles that are many."""
    q = torch.empty(1, 1, 2_000_000, 64, dtype=torch.bfloat16, device="meta")
    see = See(map=1000)
    bins = Bins.of(2_000_000, 2_000_000, see)
    assert bins is not None
    smallest = blocks_for(q.dtype, 64, 2_000_000, 2_000_000, bins.wide).rows
    strips = 4 * bins.C * max(strips_of_head(2_000_000, bins, rows) for rows in (smallest, ROWS))
    assert scratch_for(q, q, see) >= strips > 4 * bins.R * bins.C
