"""The forward with the map, against float64: masks, partial tiles, all alignments of bins, dtypes."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import present, three
from tolerances import assert_close, assert_same_bits
from torch import Tensor

from kernel_calls import ANY_MASK, MASKS, any_mask, tensors
from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.statistics import entropy, pooled_map, statistics_of
from regard.kernels.division import Bins
from regard.kernels.triton import forward as forward_module
from regard.kernels.triton import support
from regard.kernels.triton.attention import attention
from regard.kernels.triton.forward import forward
from regard.kernels.triton.support import (
    BLOCKS,
    Blocks,
    ForwardRequest,
    ForwardResult,
    MaskBands,
    bands_of,
    blocks_for,
    visible_ranges,
)
from regard.records import Statistics

SMALL = Blocks(rows=32, keys=16, warps=4, stages=2)


def weights_of(
    q: Tensor, k: Tensor, mask: Mask | None, scale: float, softcap: float | None = None
) -> tuple[Tensor, Tensor]:
    """Scores and weights in float64."""
    scores = q.double() @ k.double().repeat_interleave(q.shape[1] // k.shape[1], 1).mT * scale
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    if mask is not None:
        visible = mask.dense(q.shape[2], k.shape[2], like=q)
        scores = scores.masked_fill(~visible, -torch.inf)
    return scores, scores.softmax(-1).nan_to_num(0)


def forward_result(
    q: Tensor, k: Tensor, v: Tensor, device: str, mask: Mask | None = None, bins: int | None = 4, **options: Any
) -> ForwardResult:
    T, S = q.shape[2], k.shape[2]
    bound = None if mask is None else mask.bind(q.shape[:2], T, S, q.to(device))
    request = ForwardRequest(lse=True, maximum=True, entropy=True, bins=Bins.of(T, S, See(map=bins)))
    request, blocks = options.pop("request", request), options.pop("blocks", SMALL)
    options = {"scale": q.shape[-1] ** -0.5} | options
    call = AttentionCall(*three(x.to(device) for x in (q, k, v)), **options)
    found = forward(call, bands_of(bound), request, blocks=blocks)
    return ForwardResult(found.out.cpu(), *(None if x is None else x.cpu() for x in found[1:]))


def check(
    q: Tensor, k: Tensor, v: Tensor, device: str, mask: Mask | None = None, bins: int = 4, **options: Any
) -> None:
    """Every result of the pass equals that of float64."""
    found = forward_result(q, k, v, device, mask, bins, **options)
    scale, softcap = options.get("scale", q.shape[-1] ** -0.5), options.get("softcap")
    scores, weights = weights_of(q, k, mask, scale, softcap)
    right = weights @ v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    assert_close(found.out, right)
    assert_close(found.lse, scores.logsumexp(-1), "statistic")
    assert_close(found.maximum, scores.amax(-1), "statistic")
    assert_close(found.entropy, entropy(weights), "statistic")
    one = Bins.of(q.shape[2], k.shape[2], See(map=bins))
    assert one is not None
    padded = torch.nn.functional.pad(weights, (0, 0, 0, one.R * one.height - q.shape[2]))
    rows = padded.unflatten(2, (one.R, one.height)).sum(3)
    padded = torch.nn.functional.pad(rows, (0, one.C * one.width - k.shape[2]))
    assert_close(found.sums, padded.unflatten(3, (one.C, one.width)).sum(4), "statistic")


@pytest.mark.parametrize("name", MASKS)
def test_every_mask(name: str, device: str) -> None:
    check(*tensors(21, 33, B=2 if name in ("padding", "prefix") else 1), device, MASKS[name], bins=5)


@pytest.mark.parametrize(
    "bins", [1, 5, 8, 64, *(pytest.param(bins, marks=pytest.mark.long) for bins in (3, 4, 11, 16))]
)
def test_bins_of_every_width(bins: int, device: str) -> None:
    """Whole tiles, fractions of a tile, and unaligned bins; the last one partial."""
    check(*tensors(64, 64), device, Mask.causal(), bins=bins)
    check(*tensors(37, 45, H=1), device, Mask.window(20, 5), bins=bins)


@pytest.mark.parametrize("far", [2**31 - 1, 2**31 + 5, 2**63 - 1])
def test_a_window_beyond_32_bits(far: int, device: str) -> None:
    for mask in (Mask.window(far, 0), Mask.window(None, far), Mask.window(far, far)):
        check(*tensors(20, 24), device, mask)


@pytest.mark.parametrize("softcap", [50.0, 1e3, 1e4, 1e6])
def test_a_large_softcap_keeps_precision(softcap: float, device: str) -> None:
    check(*tensors(20, 24), device, softcap=softcap)


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 40), (17, 1), (16, 32), (50, 17), (5, 70)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(*tensors(T, S), device, Mask.causal())
    check(*tensors(T, S), device)


@pytest.mark.parametrize(("E", "Ev"), [(32, 32), (20, 5), (8, 40), (80, 80)])
def test_head_widths(E: int, Ev: int, device: str) -> None:
    check(*tensors(18, 20, E, Ev), device, Mask.causal())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(dtype: torch.dtype, device: str) -> None:
    check(*tensors(20, 36, dtype=dtype), device, Mask.causal())


def test_grouped_heads_and_any_layout(device: str) -> None:
    q, k, v = tensors(20, 24, B=2, H=2)
    check(*tensors(20, 24, H=4, G=2), device)
    check(q, k, v, device, Mask.window(7, 0))
    other_layout = (
        q.transpose(1, 2).contiguous().transpose(1, 2),
        k.mT.contiguous().mT,
        v.repeat_interleave(2, -1)[..., ::2],
    )
    plain, other = forward_result(q, k, v, device), forward_result(*other_layout, device)
    assert_close(other.out, plain.out)
    assert_close(other.sums, plain.sums, "statistic")


@pytest.mark.parametrize(("scale", "softcap"), [(1.5, 2.0), (-0.3, 30.0), (0.0, 2.0)])
def test_scale_and_softcap(scale: float, softcap: float, device: str) -> None:
    check(*tensors(20, 20), device, Mask.causal(), scale=scale)
    check(*tensors(20, 20), device, Mask.causal(), scale=scale, softcap=softcap)


def test_large_scores(device: str) -> None:
    """|scores| around 150: nothing overflows, and entropy keeps its precision."""
    q, k, v = tensors(20, 48, 32)
    found = forward_result(q * 30, k, v, device)
    scores, weights = weights_of(q * 30, k, None, 32**-0.5)
    assert scores.abs().max() > 90
    torch.testing.assert_close(found.lse, scores.logsumexp(-1).float(), rtol=1e-6, atol=1e-4)
    torch.testing.assert_close(found.entropy, entropy(weights).float(), rtol=0, atol=1e-4)


def test_equal_keys_and_one_visible_key(device: str) -> None:
    q, k, v = tensors(40, 40)
    found = forward_result(q, k[:, :, :1].expand_as(k), v, device)
    torch.testing.assert_close(found.entropy, torch.full((1, 2, 40), 40.0).log(), rtol=1e-6, atol=0)
    assert_same_bits(forward_result(q, k, v, device, Mask.window(0, 0)).entropy, torch.zeros(1, 2, 40))


def test_fully_masked_queries_get_zeros(device: str) -> None:
    q, k, v = tensors(40, 20)
    found = forward_result(q, k, v, device, Mask.causal(), bins=3)
    assert found.lse is not None
    assert found.sums is not None
    assert (found.out[:, :, :20] == 0).all()
    assert (found.lse[:, :, :20] == -torch.inf).all()
    assert (present(found.entropy)[:, :, :20] == 0).all()
    assert all(present(x).isfinite().all() for x in (found.out, found.sums, found.entropy))


@pytest.mark.filterwarnings("ignore:All-NaN slice", "ignore:invalid value encountered")
def test_a_nan_query_gives_nan(device: str) -> None:
    q, k, v = tensors(40, 20)
    q[:, :, 3] = torch.nan
    found = forward_result(q, k, v, device)
    for x in (found.out, found.lse, found.entropy):
        assert x is not None
        assert x[:, :, 3].isnan().all()
        assert x[:, :, :3].isfinite().all()


def test_statistics_that_are_not_requested_are_none(device: str) -> None:
    q, k, v = tensors(33, 40)
    plain, full = (
        forward_result(q, k, v, device, Mask.causal(), request=ForwardRequest()),
        forward_result(q, k, v, device, Mask.causal()),
    )
    assert all(x is None for x in plain[1:])
    assert_same_bits(plain.out, full.out)


def test_results_do_not_depend_on_programs_and_groups(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of programs, heads in any number of groups: no number has two writers."""
    q, k, v = tensors(40, 40, H=3)
    whole = forward_result(q, k, v, device, Mask.causal(), bins=7)
    monkeypatch.setattr(forward_module, "programs", lambda _: 5)
    monkeypatch.setattr(forward_module, "BUFFER_LIMIT", 1)
    parts = forward_result(q, k, v, device, Mask.causal(), bins=7)
    for one, other in zip(whole, parts, strict=True):
        assert_same_bits(one, other)


@settings(max_examples=12)
@given(
    T=st.integers(1, 50),
    S=st.integers(1, 50),
    bins=st.integers(1, 60),
    **ANY_MASK,
)
def test_random_calls(T: int, S: int, bins: int, left: int | None, right: int | None, ids: list[int] | None) -> None:
    mask = any_mask(T, S, left, right, ids)
    check(*tensors(T, S, H=1), "cuda" if torch.cuda.is_available() else "cpu", mask, bins)


def test_attention_returns_every_requested_statistic(device: str) -> None:
    q, k, v = (x.to(device) for x in tensors(24, 30, H=4, G=2))
    see = See(map=5, max_score=True, entropy=True, received=True, top=3, distance=True)
    mask = Mask.window(6, 2)
    out, found = attention(AttentionCall(q, k, v, scale=0.25, bound=mask.bind((1, 4), 24, 30, q), see=see))
    scores, weights = weights_of(q, k, mask, 0.25)
    right = statistics_of(weights, scores.logsumexp(-1), see)
    assert_close(out, weights @ v.double().repeat_interleave(2, 1))
    for name in ("map", "lse", "max_score", "entropy", "received", "sink", "distance"):
        assert_close(getattr(found, name), getattr(right, name), "statistic")
    assert found.top is not None
    assert right.top is not None
    assert_close(found.top.weights, right.top.weights, "weights")
    assert attention(AttentionCall(q, k, v, scale=0.25))[1] == Statistics()
    nothing = See(map=None, lse=False, sink=False)
    assert attention(AttentionCall(q, k, v, scale=0.25, see=nothing))[1] == Statistics()
    assert found.map is not None
    assert_close(pooled_map(weights, 5), found.map, "statistic", "float32")


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0), (0, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    q, k, v = (x.to(device) for x in tensors(T, S))
    out, found = attention(AttentionCall(q, k, v, scale=1.0, see=See(entropy=True)))
    assert out.shape == q.shape
    assert (out == 0).all()
    assert found.lse is not None
    assert (found.lse == -torch.inf).all()
    assert (present(found.entropy) == 0).all()


def test_visible_ranges_of_segments() -> None:
    bands = MaskBands(queries=torch.tensor([[0, 0, 1, 1, 2, 5]]), keys=torch.tensor([[0, 0, 1, 0, 1, 2, 2]]))
    assert visible_ranges(bands, 2).tolist() == [[[0, 4, 7, 7], [2, 5, 7, 7], [5, 7, 7, 7]]]
    assert visible_ranges(bands.swapped(), 4).shape == (1, 2, 4)


def test_there_are_blocks_for_every_width() -> None:
    for dtype in support.DTYPES:
        for E in range(1, 257):
            assert blocks_for(dtype, E, 10**6, 10**6) in BLOCKS.values()
    assert blocks_for(torch.bfloat16, 128, 4096, 4096, bin_width=16).keys == 64
