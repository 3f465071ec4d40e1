"""The statistics of attention computed by another kernel: every field, against float64."""

import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from narrowing import present
from tolerances import assert_close
from torch import Tensor

from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.kernels.triton import forward as forward_module
from regard.kernels.triton import hopper
from regard.kernels.triton.attention import observe
from regard.kernels.triton.support import ForwardResult, blocks_for

FIELDS = ("map", "lse", "max_score", "entropy", "received", "sink", "distance")


def pair(T: int, S: int) -> list[Tensor]:
    make = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=make) for shape in ((1, 2, T, 16), (1, 1, S, 16))]


@pytest.mark.parametrize(
    "see",
    [
        See(map=5, max_score=True, entropy=True, received=True, top=3, distance=True),
        See(map=None, lse=False, sink=False, max_score=True),
        See(map=None),
        See(map=None, lse=False, sink=False, received=True),
        See(map=None, lse=False, sink=False, qk=True, entropy=True),
        See(map=None, lse=False, sink=False),
    ],
    ids=["everything", "max_score", "sink", "received", "entropy", "nothing"],
)
@pytest.mark.parametrize(("T", "S"), [(20, 30), (30, 20)])
def test_requested_statistics_equal_float64(see: See, T: int, S: int, device: str) -> None:
    """With more queries than keys and a causal mask, the first queries are fully masked; some kernels return inf."""
    q, k = pair(T, S)
    scores = attention_scores(q.double(), k.double().expand(1, 2, -1, -1), Mask.causal(), None, 0.25)
    right = statistics_of(attention_weights(scores), scores.logsumexp(-1), see)
    lse = scores.logsumexp(-1).float().nan_to_num(neginf=torch.inf)
    q, k, lse = q.to(device), k.to(device), lse.to(device)
    found = observe(AttentionCall(q, k, k, 0.25, bound=Mask.causal().bind((1, 2), T, S, q), see=see), lse)
    for name in FIELDS:
        one, other = getattr(found, name), getattr(right, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert_close(one, other, "statistic")
    assert (found.top is None) == (right.top is None)
    if found.top is not None and right.top is not None:
        assert_close(found.top.weights, right.top.weights, "weights")


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0), (0, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    q, k = (x.to(device) for x in pair(T, S))
    see = See(map=3, max_score=True, entropy=True, received=True, top=2, distance=True)
    found = observe(AttentionCall(q, k, k, 1.0, see=see), q.new_full((1, 2, T), -torch.inf))
    right = statistics_of(torch.zeros(1, 2, T, S), torch.full((1, 2, T), -torch.inf), see)
    for name in FIELDS:
        assert_close(getattr(found, name), getattr(right, name), "statistic")


def test_queries_fully_masked_by_segments(device: str) -> None:
    """Also with a kernel that returns 0 for them."""
    q, k = pair(20, 30)
    mask = Mask.segments(torch.arange(30) // 7, queries=torch.arange(20) // 4) & Mask.causal()
    scores = attention_scores(q.double(), k.double().expand(1, 2, -1, -1), mask, None, 0.25)
    lse, see = scores.logsumexp(-1).float(), See(map=5, received=True)
    assert (lse == -torch.inf).any()
    right = statistics_of(attention_weights(scores), scores.logsumexp(-1), see)
    q, k, lse = q.to(device), k.to(device), lse.masked_fill(lse == -torch.inf, 0).to(device)
    found = observe(AttentionCall(q, k, k, 0.25, bound=mask.bind((1, 2), 20, 30, q), see=see), lse)
    for name in ("map", "lse", "received", "sink"):
        assert_close(getattr(found, name), getattr(right, name), "statistic")


class Hopper(ModuleType):
    """A stand-in for the Hopper launches, which here support head width 16: Triton's forward computes the result."""

    def __init__(self) -> None:
        super().__init__("regard.kernels.triton.hopper.launch")
        self.widths: list[int] = []

    def supports(self, call: AttentionCall, *_: Any, with_values: bool = False) -> bool:
        tensors = (call.q, call.k, call.v) if with_values else (call.q, call.k)
        return all(x.shape[3] == 16 for x in tensors) and call.softcap is None

    def forward(self, call: AttentionCall, bands: Any, request: Any, result: ForwardResult) -> ForwardResult:
        self.widths.append(call.v.shape[3])
        blocks = blocks_for(call.q.dtype, 16, call.q.shape[2], call.k.shape[2])
        found = forward_module.forward(call, bands, request, blocks=blocks)
        for one, other in zip(result, found, strict=True):
            if one is not None:
                one.copy_(present(other))
        return result


@pytest.mark.parametrize("with_lse", [False, True], ids=["without LSE", "map and entropy"])
def test_keys_replace_values_if_the_hopper_kernel_supports_it(
    with_lse: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k = (x.to(device) for x in pair(20, 30))
    see = See(map=5, max_score=True, entropy=True, sink=False)
    lse = (q.double() @ k.double().mT / 4).logsumexp(-1) if with_lse else None
    call = AttentionCall(q, k, k, 0.25, see=see)
    right = observe(call, lse)
    stand_in = Hopper()
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setattr(hopper, "launch", stand_in, raising=False)
    monkeypatch.setattr(hopper, "is_available", lambda _: True)
    found = observe(call, lse)
    assert stand_in.widths == [16]
    for name in ("map", "lse", "max_score", "entropy"):
        assert_close(getattr(found, name), getattr(right, name), "statistic")
    observe(replace(call, softcap=3.0), lse)
    assert stand_in.widths == [16], "the call that is not supported"
