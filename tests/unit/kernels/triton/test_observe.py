"""The statistics of attention that another kernel has computed: every field, against float64."""

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from tolerances import assert_close
from torch import Tensor

from regard import Mask, See
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.kernels.triton import forward_launch, hopper
from regard.kernels.triton.observe import observe
from regard.kernels.triton.support import Told
from regard.kernels.triton.tile_sizes import blocks_for

FIELDS = ("map", "lse", "entropy", "received", "sink", "distance")


def pair(T: int, S: int) -> list[Tensor]:
    make = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=make) for shape in ((1, 2, T, 16), (1, 1, S, 16))]


@pytest.mark.parametrize(
    "see",
    [
        See(map=5, entropy=True, received=True, top=3, distance=True),
        See(map=None),
        See(map=None, lse=False, sink=False, received=True),
        See(map=None, lse=False, sink=False, qk=True, entropy=True),
        See(map=None, lse=False, sink=False),
    ],
    ids=["everything", "sink", "received", "entropy", "nothing"],
)
@pytest.mark.parametrize(("T", "S"), [(20, 30), (30, 20)])
def test_what_is_asked_for_is_what_float64_says(see: See, T: int, S: int, device: str) -> None:
    """With more queries than keys, causal, the first ones see nothing; some kernels call their LSE inf."""
    q, k = pair(T, S)
    scores = attention_scores(q.double(), k.double().expand(1, 2, -1, -1), Mask.causal(), None, 0.25)
    right = statistics_of(attention_weights(scores), scores.logsumexp(-1), see)
    lse = scores.logsumexp(-1).float().nan_to_num(neginf=torch.inf)
    q, k, lse = q.to(device), k.to(device), lse.to(device)
    found = observe(q, k, lse, mask=Mask.causal().bind((1, 2), T, S, q), scale=0.25, see=see)
    for name in FIELDS:
        one, other = getattr(found, name), getattr(right, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert_close(one, other, "statistic")
    assert (found.top is None) == (right.top is None)
    if found.top is not None and right.top is not None:
        assert_close(found.top.weights, right.top.weights, "weights")


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_look_at(T: int, S: int, device: str) -> None:
    q, k = (x.to(device) for x in pair(T, S))
    see = See(map=3, entropy=True, received=True, top=2, distance=True)
    found = observe(q, k, q.new_full((1, 2, T), -torch.inf), scale=1.0, see=see)
    right = statistics_of(torch.zeros(1, 2, T, S), torch.full((1, 2, T), -torch.inf), see)
    for name in FIELDS:
        assert_close(getattr(found, name), getattr(right, name), "statistic")


def test_blind_queries_of_segments(device: str) -> None:
    """Of another kernel, too, which says 0 for them."""
    q, k = pair(20, 30)
    mask = Mask.segments(torch.arange(30) // 7, queries=torch.arange(20) // 4) & Mask.causal()
    scores = attention_scores(q.double(), k.double().expand(1, 2, -1, -1), mask, None, 0.25)
    lse, see = scores.logsumexp(-1).float(), See(map=5, received=True)
    assert (lse == -torch.inf).any()
    right = statistics_of(attention_weights(scores), scores.logsumexp(-1), see)
    q, k, lse = q.to(device), k.to(device), lse.masked_fill(lse == -torch.inf, 0).to(device)
    found = observe(q, k, lse, mask=mask.bind((1, 2), 20, 30, q), scale=0.25, see=see)
    for name in ("map", "lse", "received", "sink"):
        assert_close(getattr(found, name), getattr(right, name), "statistic")


class Hopper(ModuleType):
    """Stands in for the launches on Hopper GPUs, which take heads 16 wide here: Triton's forward writes the answer."""

    def __init__(self) -> None:
        super().__init__("regard.kernels.triton.hopper.launch")
        self.widths: list[int] = []

    def fits(self, *tensors: Tensor, **options: Any) -> bool:
        return all(x.shape[3] == 16 for x in tensors) and options["softcap"] is None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Any, told: Told, *, scale: float, asked: Any) -> Told:
        self.widths.append(v.shape[3])
        blocks = blocks_for(q.dtype, 16, q.shape[2], k.shape[2])
        found = forward_launch.forward(q, k, v, sight, scale=scale, asked=asked, blocks=blocks)
        for one, other in zip(told, found, strict=True):
            if one is not None:
                one.copy_(other)
        return told


@pytest.mark.parametrize("is_told", [False, True], ids=["without LSE", "map and entropy"])
def test_keys_stand_for_values_where_that_lets_the_quicker_kernel_in(
    is_told: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k = (x.to(device) for x in pair(20, 30))
    see = See(map=5, entropy=True, sink=False)
    lse = (q.double() @ k.double().mT / 4).logsumexp(-1) if is_told else None
    right = observe(q, k, lse, scale=0.25, see=see)
    stand_in = Hopper()
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setattr(hopper, "launching", stand_in, raising=False)
    monkeypatch.setattr(hopper, "is_at_hand", lambda _: True)
    found = observe(q, k, lse, scale=0.25, see=see)
    assert stand_in.widths == [16]
    for name in ("map", "lse", "entropy"):
        assert_close(getattr(found, name), getattr(right, name), "statistic")
    observe(q, k, lse, scale=0.25, softcap=3.0, see=see)
    assert stand_in.widths == [16], "the one that does not fit"
