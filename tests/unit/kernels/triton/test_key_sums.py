"""Sums over bins, columns and distances from q, k and the LSE, against float64: masks, bins, odd sizes, invariants."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present
from tolerances import assert_close, assert_same_bits
from torch import Tensor
from torch.nn.functional import pad

from kernel_calls import ANY_MASK, any_mask, pair
from kernel_calls import MASKS as SHARED
from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import distance, statistics_of
from regard.kernels.division import Bins
from regard.kernels.triton.attention import attention, statistics_from_lse
from regard.kernels.triton.key_sums import KeySums, map_means, sum_over_queries
from regard.kernels.triton.support import Blocks, MaskBands, bands_of

SMALL = Blocks(rows=16, keys=16, warps=4, stages=2)
MASKS = SHARED | {"after": Mask.window(0, None)}


def weights_of(q: Tensor, k: Tensor, mask: Mask | None, **options: Any) -> tuple[Tensor, Tensor]:
    """Weights and LSE in float64."""
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), k.double(), mask, None, options["scale"], options.get("softcap"))
    return attention_weights(scores), scores.logsumexp(-1)


def in_bins(weights: Tensor, bins: Bins) -> Tensor:
    T, S = weights.shape[-2:]
    padded = pad(weights, (0, bins.C * bins.width - S, 0, bins.R * bins.height - T))
    return padded.unflatten(-1, (bins.C, bins.width)).sum(-1).unflatten(-2, (bins.R, bins.height)).sum(-2)


def check(q: Tensor, k: Tensor, device: str, mask: Mask | None = None, bins: int | None = 4, **options: Any) -> KeySums:
    """Every sum equals that of float64."""
    T, S = q.shape[2], k.shape[2]
    options = {"scale": q.shape[-1] ** -0.5, "blocks": SMALL} | options
    weights, lse = weights_of(q, k, mask, **options)
    one = Bins.of(T, S, See(map=bins))
    q, k = q.to(device), k.to(device)
    bound = None if mask is None else mask.bind(q.shape[:2], T, S, q)
    call = AttentionCall(q, k, k, **{name: options.pop(name) for name in ("scale", "softcap") if name in options})
    found = sum_over_queries(call, lse.float().to(device), bands_of(bound), bins=one, **options)
    found = KeySums(*(None if x is None else x.cpu() for x in found))
    assert_close(found.received, weights.sum(-2), "statistic")
    attending = (lse > -torch.inf).sum(-1, keepdim=True)
    if found.distance is not None:
        assert_close(found.distance, distance(weights) * attending.clamp(min=1), "statistic")
    assert_close(present(found.received).sum(-1, keepdim=True), attending, "statistic", "float32")
    if one is not None:
        assert found.map is not None
        assert_close(found.map, in_bins(weights, one), "statistic")
        # Two ways to compute the same number: bins summed over queries, columns summed in bins.
        columns = pad(present(found.received), (0, one.C * one.width - S)).unflatten(-1, (one.C, one.width)).sum(-1)
        assert_close(found.map.sum(-2), columns, "statistic", "float32")
    return found


@pytest.mark.parametrize("name", MASKS)
def test_every_mask(name: str, device: str) -> None:
    check(*pair(21, 33, B=2 if name in ("padding", "prefix") else 1, H=1), device, MASKS[name], bins=5, distance=True)


@pytest.mark.parametrize("bins", [None, 1, 3, 8, 64])
def test_bins_of_every_size(bins: int | None, device: str) -> None:
    """Wider than a tile, equal, narrower, aligned with tiles or not; the last one partial."""
    check(*pair(32, 48, H=1), device, bins=bins)
    check(*pair(35, 37, H=1), device, Mask.window(20, 5), bins=bins)


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 17), (100, 17), (17, 100)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(*pair(T, S), device, Mask.causal(), bins=7, blocks=None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(dtype: torch.dtype, device: str) -> None:
    check(*pair(20, 36, 20, dtype=dtype), device, Mask.causal())


def test_grouped_heads_in_any_layout(device: str) -> None:
    q, k = pair(18, 16, H=4, G=2)
    plain = check(q, k, device)
    other_layout = check(q.transpose(1, 2).contiguous().transpose(1, 2), k.mT.contiguous().mT, device)
    for one, other in zip(plain[:2], other_layout[:2], strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize(
    "options", [{"softcap": 2.0}, {"scale": -0.3}, {"scale": 0.0}, {"scale": 1.5, "softcap": 30.0}]
)
def test_scale_and_softcap(options: dict[str, Any], device: str) -> None:
    check(*pair(20, 20), device, Mask.causal(), **options)


def test_large_scores(device: str) -> None:
    """|scores| around 150, where float32 has an LSE to 8e-6: the weights have that error, and no other."""
    q, k = (x.to(device) for x in pair(16, 32, 32))
    weights, lse = weights_of(q.cpu() * 40, k.cpu(), None, scale=32**-0.5)
    assert lse.abs().max() > 120
    call = AttentionCall(q * 40, k, k, scale=32**-0.5)
    bins = Bins.of(16, 32, See(map=5))
    found = sum_over_queries(call, lse.float().to(device), MaskBands(), bins=bins, blocks=SMALL)
    torch.testing.assert_close(present(found.received).cpu(), weights.sum(-2).float(), rtol=5e-5, atol=1e-6)


def test_equal_keys_and_one_visible_key(device: str) -> None:
    q, k = pair(20, 20)
    found = check(q, k[:, :, :1].expand_as(k), device)
    torch.testing.assert_close(found.received, torch.ones(1, 2, 20), rtol=2e-6, atol=0)
    found = check(q, k, device, Mask.window(0, 0))
    torch.testing.assert_close(found.received, torch.ones(1, 2, 20), rtol=2e-6, atol=0)


@pytest.mark.parametrize("masked_lse", [-torch.inf, torch.inf, 0.0])
def test_fully_masked_queries_add_nothing(masked_lse: float, device: str) -> None:
    """Kernels return different LSEs for fully masked queries; the weights must be 0 in every case."""
    q, k = pair(40, 20)
    mask = Mask.causal()
    weights, lse = weights_of(q, k, mask, scale=0.25)
    q, k, lse = (x.to(device) for x in (q, k, lse.float().nan_to_num(neginf=masked_lse)))
    bands, bins = bands_of(mask.bind((1, 2), 40, 20, q)), Bins.of(40, 20, See(map=3))
    found = sum_over_queries(AttentionCall(q, k, k, scale=0.25), lse, bands, bins=bins, blocks=SMALL)
    assert_close(found.received, weights.sum(-2), "statistic")
    assert found.map is not None
    assert (found.map[..., 0, :] == 0).all()


def test_a_head_has_the_same_bits_alone_and_among_others(device: str) -> None:
    q, k = pair(33, 33, H=2, G=2)
    together = check(q, k, device, Mask.causal(), bins=7)
    for h in range(2):
        alone = check(q[:, h : h + 1], k[:, h : h + 1], device, Mask.causal(), bins=7)
        for one, other in zip(together[:2], alone[:2], strict=True):
            assert one is not None
            assert_same_bits(one[:, h : h + 1], other)


@settings(max_examples=6)
@given(
    T=st.integers(1, 40),
    S=st.integers(1, 40),
    bins=st.integers(1, 50),
    **ANY_MASK,
)
def test_random_calls(T: int, S: int, bins: int, left: int | None, right: int | None, ids: list[int] | None) -> None:
    mask = any_mask(T, S, left, right, ids)
    check(*pair(T, S, H=1), "cuda" if torch.cuda.is_available() else "cpu", mask, bins)


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    q, k = (x.to(device) for x in pair(T, S))
    lse, bins = q.new_full((1, 2, T), -torch.inf), Bins.of(T, S, See(map=3))
    found = sum_over_queries(AttentionCall(q, k, k, scale=1.0), lse, MaskBands(), bins=bins, distance=True)
    assert present(found.received).shape == (1, 2, S)
    assert not any(x.any() for x in found if x is not None)


SEGMENTS = Mask.segments(torch.arange(9) // 3, queries=torch.arange(11) // 2)
MEANS_MASKS = {"none": None, "causal": Mask.causal(), "window": Mask.window(3, 2), "segments": SEGMENTS & Mask.causal()}


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
    rule, shape = MEANS_MASKS[mask], ((1, 2), 11, 9)
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
