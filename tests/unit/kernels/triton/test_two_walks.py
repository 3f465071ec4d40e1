"""A map in two walks where one is quick and cannot do the bins: by a stand-in for the kernels of a Hopper."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tolerances import assert_close
from torch import Tensor

from kernel_calls import tensors
from regard import Mask, See
from regard.kernels.tiles import Bins
from regard.kernels.triton import hopper
from regard.kernels.triton.asked import Asked, Told
from regard.kernels.triton.blocks import Blocks
from regard.kernels.triton.launching import forward
from regard.kernels.triton.scratch import AFTERWARDS
from regard.kernels.triton.sight import Sight, sight_of

SMALL = Blocks(rows=16, keys=16, warps=1, stages=1)


@pytest.fixture
def quicker(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """In the place of those kernels: they take every call without bins, and those with bins 16 wide. What was asked."""
    asked: list[Asked] = []

    def fits(*tensors: Tensor, bins: Bins | None, **options: Any) -> bool:
        return len(tensors) == 3 and (bins is None or bins.wide == 16)

    def quick(q: Tensor, k: Tensor, v: Tensor, sight: Sight, told: Told, **options: Any) -> Told:
        asked.append(options["asked"])
        return forward(q, k, v, sight, blocks=SMALL, **options)

    fake = SimpleNamespace(fits=fits, forward=quick)
    monkeypatch.setattr(hopper, "is_at_hand", lambda device: True)
    monkeypatch.setattr(hopper, "launching", fake, raising=False)
    monkeypatch.setitem(sys.modules, "regard.kernels.triton.hopper.launching", fake)
    return asked


@pytest.mark.parametrize(
    ("E", "bins", "walks"),
    [(AFTERWARDS, 3, [None]), (AFTERWARDS, 2, ["map"]), (AFTERWARDS, None, [None]), (64, 3, []), (64, 2, ["map"])],
    ids=["two walks", "bins that fit", "no map", "narrow heads", "narrow heads, bins that fit"],
)
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
def test_bins_that_fit_no_tiles(
    E: int, bins: int | None, walks: list[str | None], mask: Mask | None, quicker: list[Asked], device: str
) -> None:
    q, k, v = (x.to(device) for x in tensors(20, 32, E, E))
    bound = None if mask is None else mask.bind(q.shape[:2], 20, 32, q)
    asked = Asked(entropy=True, bins=None if bins is None else Bins.of(20, 32, See(map=bins)))
    found = forward(q, k, v, sight_of(bound), scale=0.1, asked=asked)
    assert [None if one.bins is None else "map" for one in quicker] == walks
    right = forward(q, k, v, sight_of(bound), scale=0.1, asked=asked, blocks=SMALL)
    for one, other in zip(found, right, strict=True):
        if other is not None:
            assert_close(one, other.double(), "statistic")
    if bins is not None:
        assert found.sums is not None
        assert torch.equal(found.lse == -torch.inf, right.lse == -torch.inf)
