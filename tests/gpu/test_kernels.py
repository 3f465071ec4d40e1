"""The Triton kernels on a CUDA device: float64, invariants, PyTorch's kernels as oracles at 131,072 tokens, edge cases.

Inputs are bfloat16; the reference uses the same numbers in float64. Lengths, masks and bins are chosen so that tests
share compiled kernels.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from narrowing import Three, present, three
from tolerances import assert_close
from torch import Tensor
from torch.nn.functional import one_hot, pad

from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import statistics_of
from regard.records import Statistics

if torch.cuda.is_available():  # without such a device Triton may be missing
    from regard.kernels.division import Bins
    from regard.kernels.triton.attention import attention, observe
    from regard.kernels.triton.autograd import attention_with_gradient
    from regard.kernels.triton.forward import forward
    from regard.kernels.triton.key_sums import sum_over_queries
    from regard.kernels.triton.second_pass import rectangle
    from regard.kernels.triton.support import ForwardRequest, ForwardResult, bands_of
    from regard.kernels.triton.top_keys import query_statistics

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

DEVICE = "cuda"
SHORT, MIDDLE, LONG = 4096, 32_768, 131_072
SAMPLES = 64
"""Rows of a long text that are checked in float64."""
MAP = See(map=256)
EVERYTHING = replace(MAP, max_score=True, entropy=True, received=True, top=8, distance=True)
RUNS = 100
MANY_SAMPLES = 4161
"""Samples of four heads of width 64: 4,363 million numbers, more than 32 bits can count."""
INDICATOR_BINS = 64
"""Bins of the map computed with indicator values."""
NEAR = 1e-4
"""Relative error of sums of weights; absolute error of the LSE, in nats. Entropy may differ by ten times as much."""


def tensors(n: int, E: int = 64, *, H: int = 4, G: int = 2) -> Three[Tensor]:
    make = torch.Generator(DEVICE).manual_seed(0)
    shapes = ((1, H, n, E), (1, G, n, E), (1, G, n, E))
    return three(torch.randn(shape, generator=make, device=DEVICE).bfloat16() for shape in shapes)


def bound(mask: Mask | None, q: Tensor, k: Tensor) -> Any:
    return None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q)


def attention_of(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, see: See = EVERYTHING
) -> tuple[Tensor, Statistics]:
    return attention(AttentionCall(q, k, v, q.shape[-1] ** -0.5, bound=bound(mask, q, k), see=see))


def forward_result(q: Tensor, k: Tensor, v: Tensor, bins: "Bins | None") -> "ForwardResult":
    """The result of the single pass for causal attention."""
    request = ForwardRequest(lse=True, maximum=True, entropy=True, bins=bins)
    return forward(AttentionCall(q, k, v, q.shape[-1] ** -0.5), bands_of(bound(Mask.causal(), q, k)), request)


def in_float64(q: Tensor, k: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor]:
    """Weights and LSE."""
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), wide, mask, None, q.shape[-1] ** -0.5)
    return attention_weights(scores), scores.logsumexp(-1)


def assert_near(found: Any, expected: Tensor, what: str, near: float = NEAR) -> None:
    """Relative error at most `near`, for values above a millionth; smaller ones count as a millionth."""
    assert found is not None, what
    far = (found.double() - expected).abs() / expected.abs().clamp(min=1e-6)
    assert far.numel() == 0 or far.max() <= near, f"{what}: {far.max():.1e} off"


def assert_lse(found: Any, expected: Tensor) -> None:
    assert (found.isinf() == expected.isinf()).all()
    assert (found.double() - expected).nan_to_num(0).abs().max() <= NEAR


def assert_top_keys(found: Any, weights: Tensor, near: float = NEAR) -> None:
    """Distinct keys with the highest weights, highest first; equal ones may be exchanged."""
    best = weights.topk(found.indices.shape[-1], dim=-1).values
    ordered = found.indices.sort(-1).values
    assert (ordered.diff(dim=-1) > 0).all()
    assert (found.weights.diff(dim=-1) <= 0).all()
    assert_near(found.weights, best, "top", near)
    assert_near(weights.gather(-1, found.indices), best, "keys of top", near)


# --- float64 and edge cases ----------------------------------------------------------------------------------


class Case(NamedTuple):
    make: Callable[[], Three[Tensor]]
    mask: Mask | None = None
    near: float = NEAR
    second_pass: bool = False
    """Whether the map is also computed by a second pass."""


def with_a_sink() -> Three[Tensor]:
    """Each query gives the first key nearly all of its weight."""
    q, k, v = tensors(SHORT)
    q[..., 0], k[..., 0] = 8, 0
    k[:, :, 0, 0] = 20
    return q, k, v


def with_large_scores() -> Three[Tensor]:
    """Scores around 150."""
    q, k, v = tensors(SHORT)
    return q * 30, k, v


def with_equal_keys() -> Three[Tensor]:
    q, k, v = tensors(SHORT)
    return q, k[:, :, :1].expand_as(k).contiguous(), v


def segments() -> Mask:
    """Texts of different lengths, some of them in several pieces. Some queries belong to a text without keys."""
    texts = 32 * torch.arange(SHORT, device=DEVICE) ** 2 // SHORT**2 % 29
    return Mask.segments(texts, queries=torch.where(texts == 3, -1, texts))


CASES: dict[str, Callable[[], Case]] = {
    "causal": lambda: Case(lambda: tensors(SHORT), Mask.causal(), second_pass=True),
    "full": lambda: Case(lambda: tensors(SHORT)),
    "wide": lambda: Case(lambda: tensors(SHORT, 128, H=2, G=2), Mask.causal()),
    "one": lambda: Case(lambda: tensors(1), Mask.causal()),
    "seventeen": lambda: Case(lambda: tensors(17), Mask.causal()),
    "ragged": lambda: Case(lambda: tensors(SHORT - 1), Mask.causal(), second_pass=True),
    "window": lambda: Case(lambda: tensors(SHORT), Mask.window(96, 48)),
    "one visible key": lambda: Case(lambda: tensors(SHORT), Mask.window(0, 0)),
    "segments": lambda: Case(lambda: tensors(SHORT), segments(), second_pass=True),
    "sink": lambda: Case(with_a_sink, Mask.causal()),
    # In base 2 these are scores of 200, which float32 represents to 1.5e-5, and a sum of 64 products to a few of those.
    "large scores": lambda: Case(with_large_scores, Mask.causal(), near=5 * NEAR),
    "equal keys": lambda: Case(with_equal_keys, Mask.causal()),
}


@pytest.mark.parametrize("name", CASES)
def test_every_statistic_equals_float64(name: str) -> None:
    make, mask, near, second_pass = CASES[name]()
    q, k, v = make()
    weights, lse = in_float64(q, k, mask)
    right = statistics_of(weights, lse, EVERYTHING)
    out, found = attention_of(q, k, v, mask)
    wide = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    assert_close(out, (weights @ wide).cpu())
    assert_lse(found.lse, lse)
    assert (present(found.entropy) - present(right.entropy)).abs().max() <= 10 * NEAR
    for field in ("map", "received", "distance", "sink"):
        assert_near(getattr(found, field), getattr(right, field), field, near)
    assert_top_keys(found.top, weights, near)
    if second_pass:
        call = AttentionCall(q, k, v, q.shape[-1] ** -0.5, bound=bound(mask, q, k), see=MAP)
        second = observe(call, found.lse)
        assert_near(second.map, present(right.map), "map of the second pass", near)


def test_entropy_in_known_cases() -> None:
    """Equal keys: the logarithm of the number of visible keys. One key: exactly 0. No key: 0."""
    _, found = attention_of(*with_equal_keys(), Mask.causal())
    visible = torch.arange(1, SHORT + 1, device=DEVICE, dtype=torch.float64)
    assert (present(found.entropy) - visible.log()).abs().max() <= 1e-5
    _, found = attention_of(*tensors(SHORT), Mask.window(0, 0))
    assert (present(found.entropy) == 0).all()
    out, found = attention_of(*tensors(SHORT), segments())
    masked = ~segments().dense(SHORT, SHORT, like=out).any(-1)
    assert masked.any()
    assert (out[:, :, masked] == 0).all()
    assert (present(found.entropy)[:, :, masked] == 0).all()
    assert (present(found.lse)[:, :, masked] == -torch.inf).all()
    assert (present(found.top).weights[:, :, masked] == 0).all()


def test_gradients_equal_float64() -> None:
    """Through output, LSE, map and entropy at once."""
    q, k, v = tensors(SHORT // 4)
    bins = Bins.of(SHORT // 4, SHORT // 4, See(map=8))
    assert bins is not None
    leaves = three(x.clone().requires_grad_() for x in (q, k, v))
    mask = bound(Mask.causal(), q, k)
    request = ForwardRequest(lse=True, entropy=True, bins=bins)
    ours = attention_with_gradient(AttentionCall(*leaves, scale=0.125, bound=mask), request)
    doubles = [x.double().requires_grad_() for x in (q, k, v)]
    weights, lse = in_float64(doubles[0], doubles[1], Mask.causal())
    pooled = weights.unflatten(-1, (bins.C, bins.width)).sum(-1).unflatten(-2, (bins.R, bins.height)).sum(-2)
    out = weights @ doubles[2].repeat_interleave(2, 1)
    # Masked weights have no entropy, and no gradient of it, which would be infinite.
    theirs = (out, lse, torch.special.entr(weights.clamp(min=1e-300)).sum(-1), pooled)
    outputs = [present(x) for x in (ours.out, ours.lse, ours.entropy, ours.sums)]
    make = torch.Generator(DEVICE).manual_seed(1)
    upstream = [torch.randn(x.shape, generator=make, device=DEVICE).to(x.dtype) for x in outputs]
    upstream[3] /= bins.height  # as a mean over the queries of a bin
    found = torch.autograd.grad(outputs, leaves, upstream)
    right = torch.autograd.grad(theirs, doubles, [x.double() for x in upstream])
    for one, other in zip(found, right, strict=True):
        assert_close(one, other.cpu(), "gradient")


# --- invariants ----------------------------------------------------------------------------------------------


def test_invariants() -> None:
    q, k, v = tensors(MIDDLE)
    bins = Bins.of(MIDDLE, MIDDLE, See(map=256))
    assert bins is not None
    one = forward_result(q, k, v, bins)
    mask = bound(Mask.causal(), q, k)
    call = AttentionCall(q, k, v, 0.125, bound=mask)
    second = sum_over_queries(call, present(one.lse), bands_of(mask), bins=bins)
    found = query_statistics(call, present(one.lse), top=8)
    assert one.sums is not None
    visible = torch.arange(1, MIDDLE + 1, device=DEVICE, dtype=torch.float64)
    rows = torch.full((bins.R,), float(bins.height), device=DEVICE, dtype=torch.float64)
    assert_near(one.sums.double().sum(-1), rows.expand(1, 4, -1), "each row's bins add up to 1", 1e-5)
    total = torch.tensor(float(MIDDLE), device=DEVICE, dtype=torch.float64)
    assert_near(one.sums.double().sum((-2, -1)), total, "the map's total is the number of rows", 1e-5)
    assert_near(present(second.received).double().sum(-1), total, "so is what was received", 1e-5)
    columns = present(second.received).double().unflatten(-1, (bins.C, bins.width)).sum(-1)
    assert_near(one.sums.double().sum(-2), columns, "the map's columns are what was received")
    assert_near(one.sums, present(second.map).double(), "one pass and two")
    assert (present(one.entropy) >= 0).all()
    assert (present(one.entropy) <= visible.log() + 1e-3).all()
    top_weight = (present(one.maximum) - present(one.lse)).double().exp()
    assert (top_weight >= (1 - 1e-5) / visible).all()
    assert_near(present(found.top).weights[..., 0], top_weight, "the highest weight, by its score")


# --- long texts, against PyTorch's kernels -----------------------------------------------------------------------


class Long(NamedTuple):
    """Two heads that share their keys, causal. `needles`: queries of the first head, and the keys that match them."""

    q: Tensor
    k: Tensor
    v: Tensor
    result: "ForwardResult"
    needles: tuple[Tensor, Tensor]


@pytest.fixture(scope="module")
def long() -> Long:
    q, k, v = tensors(LONG, H=2, G=1)
    make = torch.Generator(DEVICE).manual_seed(2)
    places = torch.randperm(LONG // 2, generator=make, device=DEVICE)[:SAMPLES]
    rows = LONG // 2 + torch.randperm(LONG // 2, generator=make, device=DEVICE)[:SAMPLES]
    k[0, 0, places] = 2 * q[0, 0, rows]
    return Long(q, k, v, forward_result(q, k, v, Bins.of(LONG, LONG, See(map=LONG // 128))), (rows, places))


def stock(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Output and LSE of float32 causal attention by a PyTorch kernel."""
    out, lse, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True, scale=scale)
    return out, lse[..., : q.shape[2]]


def test_the_map_of_a_long_text_equals_attention_with_indicator_values(long: Long) -> None:
    """Values that indicate the bin of a key: attention to them gives the row's weights in bins."""
    q, k = long.q.float(), long.k.float().expand(-1, 2, -1, -1).contiguous()
    bins = torch.arange(LONG, device=DEVICE) * INDICATOR_BINS // LONG
    indicators = one_hot(bins, INDICATOR_BINS).float().expand(1, 2, -1, -1).contiguous()
    rows, lse = stock(q, k, indicators, 0.125)
    right = rows.double().unflatten(2, (INDICATOR_BINS, -1)).sum(3)
    assert long.result.sums is not None
    columns = long.result.sums.double().unflatten(3, (INDICATOR_BINS, -1)).sum(4)
    found = columns.unflatten(2, (INDICATOR_BINS, -1)).sum(3)
    assert_near(found, right, "the map")
    assert_lse(long.result.lse, lse.double())


def test_received_attention_of_a_long_text_equals_a_transposed_lse(long: Long) -> None:
    """log Σᵢ exp(sᵢⱼ − LSEᵢ): keys act as queries, two more columns subtract the LSE; reversed, it is causal."""
    q, k = long.q.float(), long.k.float().expand(-1, 2, -1, -1).contiguous()
    _, lse = stock(q, k, q, 0.125)
    most = -lse.bfloat16().float()[..., None]  # exact in bfloat16, should products be rounded
    key_side = torch.cat((k * 0.125, torch.ones_like(k[..., :2])), -1).flip(2)
    query_side = torch.cat((q, most, -lse[..., None] - most), -1).flip(2)
    _, logs = stock(pad(key_side, (0, 6)), pad(query_side, (0, 6)), torch.zeros_like(q[..., :8]), 1.0)
    mask = bound(Mask.causal(), long.q, long.k)
    found = sum_over_queries(AttentionCall(long.q, long.k, long.v, 0.125), present(long.result.lse), bands_of(mask))
    assert_near(found.received, logs.flip(2).double().exp(), "received")


def test_rows_of_a_long_text_equal_float64(long: Long) -> None:
    rows = torch.randperm(LONG, generator=torch.Generator(DEVICE).manual_seed(3), device=DEVICE)[:SAMPLES]
    scores = long.q[:, :, rows].double() @ long.k.double().mT * 0.125
    scores = scores.masked_fill(torch.arange(LONG, device=DEVICE) > rows[:, None], -torch.inf)
    weights = scores.softmax(-1)
    assert_close(long.result.out[:, :, rows], (weights @ long.v.double()).cpu())
    assert_lse(present(long.result.lse)[:, :, rows], scores.logsumexp(-1))
    assert (present(long.result.entropy)[:, :, rows] - torch.special.entr(weights).sum(-1)).abs().max() <= 10 * NEAR
    mask = bound(Mask.causal(), long.q, long.k)
    call = AttentionCall(long.q, long.k, long.v, 0.125, bound=mask)
    zoomed = rectangle(call, present(long.result.lse), rows, slice(0, LONG))
    assert_near(zoomed, weights, "weights")
    found = query_statistics(call, present(long.result.lse), top=8)
    top = present(found.top)._replace(
        indices=present(found.top).indices[:, :, rows], weights=present(found.top).weights[:, :, rows]
    )
    assert_top_keys(top, weights)
    needle_rows, places = long.needles
    assert (present(found.top).indices[0, 0, needle_rows, 0] == places).all()


# --- reproducibility, memory, large offsets ----------------------------------------------------------------------


def test_a_hundred_runs_are_bitwise_equal() -> None:
    q, k, v = tensors(SHORT)
    leaves = three(x.clone().requires_grad_() for x in (q, k, v))
    mask = bound(Mask.causal(), q, k)

    def run() -> list[Tensor]:
        out, found = attention_of(q, k, v, Mask.causal())
        second = observe(AttentionCall(q, k, v, 0.125, bound=mask, see=MAP), found.lse)
        out_with_grad = attention_with_gradient(AttentionCall(*leaves, 0.125, bound=mask), ForwardRequest()).out
        gradients = torch.autograd.grad(out_with_grad, leaves, v.repeat_interleave(2, 1))
        fields = (found.map, found.lse, found.entropy, found.received, found.distance, *present(found.top))
        return [out, *fields, second.map, *gradients]

    first = run()
    for _ in range(RUNS - 1):
        assert all(torch.equal(one, other) for one, other in zip(run(), first, strict=True))


def peak(run: Callable[[], object]) -> int:
    """Bytes beyond those allocated before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    torch.cuda.synchronize()
    del found
    return torch.cuda.max_memory_allocated() - before


def slope(lengths: list[int], memory: list[int]) -> float:
    """Of the logarithms, by least squares."""
    x = torch.tensor([math.log(n) for n in lengths], dtype=torch.float64)
    y = torch.tensor([math.log(m) for m in memory], dtype=torch.float64)
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


@pytest.mark.parametrize("what", ["statistics", "gradients"])
def test_memory_grows_linearly(what: str) -> None:
    lengths = [LONG // 2**i for i in range(4, -1, -1)]
    found = []
    for n in lengths:
        q, k, v = tensors(n, H=2, G=1)
        if what == "statistics":
            see = See(map=32, entropy=True, received=True, top=8)
            found.append(peak(partial(attention_of, q, k, v, Mask.causal(), see)))
        else:
            leaves = three(x.requires_grad_() for x in (q, k, v))
            mask = bound(Mask.causal(), q, k)

            def backward(leaves: Three[Tensor] = leaves, mask: Any = mask) -> object:
                out = attention_with_gradient(AttentionCall(*leaves, 0.125, bound=mask), ForwardRequest()).out
                return torch.autograd.grad(out, leaves, torch.ones_like(out))

            found.append(peak(backward))
    assert slope(lengths, found) <= 1.05, found
    assert max(found) < LONG**2, "less than a byte for each pair of tokens"


def test_offsets_beyond_31_bits() -> None:
    """The last of many samples, billions of numbers after the first, equals the same sample alone."""
    make = torch.Generator(DEVICE).manual_seed(0)
    q = torch.randn((MANY_SAMPLES, 4, SHORT, 64), generator=make, device=DEVICE, dtype=torch.bfloat16)
    k = q[:, ::2]

    def everything(q: Tensor, k: Tensor) -> list[Tensor]:
        out, found = attention_of(q, k, k, Mask.causal())
        leaves, mask = three(x.detach().requires_grad_() for x in (q, k, k)), bound(Mask.causal(), q, k)
        result = attention_with_gradient(AttentionCall(*leaves, 0.125, bound=mask), ForwardRequest())
        gradients = torch.autograd.grad(result.out, leaves, q)
        rows = torch.arange(SHORT - 8, SHORT, device=DEVICE)
        zoomed = rectangle(AttentionCall(q, k, k, 0.125, bound=mask), present(found.lse), rows, slice(0, SHORT))
        fields = (found.map, found.lse, found.entropy, found.received, *present(found.top))
        return [x[-1] for x in (out, *fields, *gradients, zoomed, found.distance)]

    *far, last_distance = everything(q, k)
    *alone, distance = everything(q[-1:], k[-1:])
    assert all(map(torch.equal, far, alone))
    torch.testing.assert_close(last_distance, distance)  # PyTorch sums the tiles in an order of its own
