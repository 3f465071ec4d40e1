"""The means of a map and the mean weight of the first key, against float64."""

import pytest
import torch
from narrowing import present
from tolerances import assert_close

from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.kernels.tiles import Bins
from regard.kernels.triton.attention import attention, statistics_from_lse
from regard.kernels.triton.map_means import map_means
from regard.kernels.triton.mask_bands import bands_of

SEGMENTS = Mask.segments(torch.arange(9) // 3, queries=torch.arange(11) // 2)
MASKS = {"none": None, "causal": Mask.causal(), "window": Mask.window(3, 2), "segments": SEGMENTS & Mask.causal()}


@pytest.mark.parametrize(
    ("mask", "see", "softcap"),
    [
        ("none", See(map=4), None),
        ("causal", See(), None),
        ("causal", See(map=None), 2.0),
        ("window", See(map=4), 2.0),
        ("segments", See(map=4, sink=False), None),
        ("segments", See(map=None), None),
    ],
    ids=str,
)
def test_means_equal_float64(mask: str, see: See, softcap: float | None, device: str) -> None:
    """11 queries, 9 keys: with a causal mask the first queries are fully masked."""
    make = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, H, n, 20, generator=make)[..., :18] for H, n in ((2, 11), (1, 9)))
    rule, shape = MASKS[mask], ((1, 2), 11, 9)
    scores = attention_scores(q.double(), k.double().repeat_interleave(2, 1), rule, None, 0.3, softcap)
    right = statistics_of(attention_weights(scores), scores.logsumexp(-1), see)
    q, k, lse = q.to(device), k.to(device), scores.logsumexp(-1).float().to(device)
    call = AttentionCall(q, k, k, 0.3, bound=None if rule is None else rule.bind(*shape, q), softcap=softcap, see=see)
    for found in (statistics_from_lse(call, lse), attention(call)[1]):
        for name in ("map", "sink"):
            one, other = getattr(found, name), getattr(right, name)
            assert (one is None) == (other is None), name
            if one is not None:
                assert_close(one, other, "statistic")


def test_a_nan_reaches_only_its_bin_and_head(device: str) -> None:
    q = torch.randn(1, 2, 8, 16, generator=torch.Generator().manual_seed(0)).to(device)
    bins = present(Bins.of(8, 8, See(map=4)))
    lse = torch.logsumexp(q @ q.mT, -1)
    lse[0, 1, 3] = torch.nan
    call = AttentionCall(q, q, q, 1.0)
    sink = present(map_means(call, lse, bands_of(None), bins, torch.ones(1, 2, 4, 4, device=device), sink=True))
    assert sink.isnan().tolist() == [[False, True]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_rows_of_one_query_stay_as_they_are(dtype: torch.dtype, device: str) -> None:
    """A map of one query a bin holds the weights themselves."""
    q = torch.randn(1, 2, 5, 16, generator=torch.Generator().manual_seed(0)).to(device, dtype)
    bins = present(Bins.of(5, 5, See()))
    weights = torch.rand(1, 2, 5, 5, generator=torch.Generator().manual_seed(1)).to(device)
    means = weights.clone()
    assert map_means(AttentionCall(q, q, q, 1.0), weights.sum(-1), bands_of(None), bins, means, sink=False) is None
    assert torch.equal(means, weights)
