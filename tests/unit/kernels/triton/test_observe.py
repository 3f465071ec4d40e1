"""The statistics of attention that another kernel has computed: every field, against float64."""

import pytest
import torch
from tolerances import assert_close
from torch import Tensor

from regard import Mask, See
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.kernels.triton.observe import observe

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
