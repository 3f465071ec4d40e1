"""The Hopper kernels against float64: lengths, masks, bins, layouts, edge cases; and bitwise reproducible.

Triton compiles separate kernels for sizes that are 1, or multiples of 16, or not: sizes are chosen so that tests share
kernels.
"""

from itertools import product
from typing import Any

import pytest
import torch
from narrowing import Three, present, three
from torch import Tensor

from regard import Mask, See
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights

if AVAILABLE := torch.cuda.is_available():  # without such a device Triton may be missing
    from regard.kernels.division import Bins
    from regard.kernels.triton import hopper
    from regard.kernels.triton.attention import observe
    from regard.kernels.triton.forward import forward
    from regard.kernels.triton.key_sums import sum_over_queries
    from regard.kernels.triton.support import SEARCH_BLOCKS, ForwardRequest, ForwardResult, bands_of, blocks_for
    from regard.kernels.triton.top_keys import Candidates, query_statistics
    from regard.records import Top

    if AVAILABLE := hopper.is_available(torch.device("cuda")):
        from regard.kernels.triton.hopper import launch as hopper_launch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not AVAILABLE, reason="needs a Hopper GPU, and a Triton whose Gluon is known"),
]

DEVICE = "cuda"
CAUSAL = Mask.causal()
RUNS = 20
NEAR = 1e-4
"""Relative error of sums of weights; absolute error of the LSE, in nats. Entropy may differ by ten times as much."""
ROUNDED = {torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""Weights are rounded before they are multiplied with values, and so is the output: by half of this each, relative."""


def tensors(
    T: int, S: int, E: int = 64, *, B: int = 1, H: int = 8, G: int = 2, dtype: torch.dtype = torch.bfloat16
) -> Three[Tensor]:
    make = torch.Generator(DEVICE).manual_seed(0)
    shapes = ((B, H, T, E), (B, G, S, E), (B, G, S, E))
    return three(torch.randn(shape, generator=make, device=DEVICE).to(dtype) for shape in shapes)


def bins_of(T: int, S: int, height: int, width: int) -> "Bins":
    """The last bins may be partial."""
    return Bins(height, width, R=-(-T // height), C=-(-S // width))


def bound(mask: Mask | None, q: Tensor, k: Tensor) -> Any:
    return None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q)


def forward_result(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, request: "ForwardRequest", *, is_supported: bool = True
) -> "ForwardResult":
    """The result of the forward; `is_supported` is whether the Hopper kernels compute it."""
    call, bands = AttentionCall(q, k, v, q.shape[-1] ** -0.5), bands_of(bound(mask, q, k))
    assert hopper_launch.supports(call, bands, request.bins, with_values=True) == is_supported
    return forward(call, bands, request)


def in_float64(q: Tensor, k: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor]:
    """Weights and LSE."""
    keys = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), keys, mask, None, q.shape[-1] ** -0.5)
    return attention_weights(scores), scores.logsumexp(-1)


def pooled(weights: Tensor, bins: "Bins") -> Tensor:
    """Their sums over the bins."""
    T, S = weights.shape[-2:]
    whole = torch.nn.functional.pad(weights, (0, bins.C * bins.width - S, 0, bins.R * bins.height - T))
    return whole.unflatten(-1, (bins.C, bins.width)).sum(-1).unflatten(-2, (bins.R, bins.height)).sum(-2)


def assert_near(found: Tensor | None, expected: Tensor, what: str, near: float = NEAR) -> None:
    """Relative error at most `near`, for values above a millionth; smaller ones count as a millionth."""
    assert found is not None, what
    far = (found.double() - expected).abs() / expected.abs().clamp(min=1e-6)
    assert far.max() <= near, f"{what}: {far.max():.1e} off"


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | None,
    request: "ForwardRequest",
    *,
    near: float = NEAR,
    is_supported: bool = True,
) -> "ForwardResult":
    """All requested statistics equal those of float64, and no others are returned."""
    request = request._replace(maximum=True)
    found = forward_result(q, k, v, mask, request, is_supported=is_supported)
    weights, lse = in_float64(q, k, mask)
    assert found.maximum is not None
    assert (found.maximum.isinf() == lse.isinf()).all()
    assert (found.maximum.double() - weights.amax(-1).log() - lse).nan_to_num(0).abs().max() <= NEAR
    values = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    off = (found.out.double() - weights @ values).abs()
    allowed = (ROUNDED[q.dtype] + near) * (weights @ values.abs())  # 0 for fully masked queries
    assert (off <= allowed).all(), f"output: {(off - allowed).max():.1e} beyond"
    assert (found.lse is not None) == (request.lse or request.bins is not None)
    assert (found.entropy is not None) == request.entropy
    if found.lse is not None:
        assert (found.lse.isinf() == lse.isinf()).all()
        assert (found.lse.double() - lse).nan_to_num(0).abs().max() <= NEAR
    if found.entropy is not None:
        assert (found.entropy - torch.special.entr(weights).sum(-1)).abs().max() <= 10 * NEAR
    if request.bins is not None:
        assert_near(found.sums, pooled(weights, request.bins), "map", near)
    return found


def check_second(q: Tensor, k: Tensor, lse: Tensor | None, mask: Mask | None, bins: "Bins") -> None:
    """Map and received attention from the LSE equal those of float64."""
    assert lse is not None
    weights, _ = in_float64(q, k, mask)
    call = AttentionCall(q, k, k, q.shape[-1] ** -0.5)
    found = sum_over_queries(call, lse, bands_of(bound(mask, q, k)), bins=bins)
    assert_near(found.map, pooled(weights, bins), "map of the second pass")
    assert_near(found.received, weights.sum(-2), "received")


# --- lengths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "S"), list(product((65, 127, 200, 1000), (17, 129, 4095))))
def test_lengths_that_fill_no_tile(T: int, S: int) -> None:
    check(*tensors(T, S), None, ForwardRequest(lse=True, entropy=True))


# Differences that are multiples of 16 are left out.
@pytest.mark.parametrize(
    ("T", "S"),
    [(127, 17), (1000, 17), (127, 129), (200, 129), (1000, 129), (65, 4095), (200, 4095), (1000, 4095)],
)
def test_causal_with_different_lengths(T: int, S: int) -> None:
    """Also with more queries than keys: the first ones are fully masked."""
    found = check(*tensors(T, S, 128, dtype=torch.float16), CAUSAL, ForwardRequest(lse=True, entropy=True))
    n_masked = max(0, T - S)
    assert (found.out[:, :, :n_masked] == 0).all()
    assert found.entropy is not None
    assert (found.entropy[:, :, :n_masked] == 0).all()
    assert found.lse is not None
    assert (found.lse[:, :, :n_masked] == -torch.inf).all()


def test_one_head_of_one_key() -> None:
    q, k, v = tensors(64, 1, 128, H=1, G=1)
    found = check(q, k, v, CAUSAL, ForwardRequest(lse=True, entropy=True))
    assert torch.equal(found.out[:, :, -1:], v), "with one visible key the output is its value"


def test_many_heads_without_statistics() -> None:
    """Each processor computes several tiles."""
    check(*tensors(4096, 4096, H=40, G=10, dtype=torch.float16), CAUSAL, ForwardRequest())


# --- bins -------------------------------------------------------------------------------------------------------


def test_narrow_bins_with_a_partial_last_one() -> None:
    q, k, v = tensors(1000, 1000, 128, B=2, H=12, G=3)
    bins = bins_of(1000, 1000, 32, 32)
    found = check(q, k, v, None, ForwardRequest(bins=bins))
    check_second(q, k, found.lse, None, bins)


@pytest.mark.parametrize("T", [256, 1024])
def test_the_narrowest_bins(T: int) -> None:
    check(*tensors(T, 1024, dtype=torch.float16), CAUSAL, ForwardRequest(entropy=True, bins=bins_of(T, 1024, 16, 16)))


@pytest.mark.parametrize(
    ("T", "S", "height", "width"),
    [(4096, 4096, 256, 256), (4080, 4080, 256, 256), (64, 4096, 64, 256), (4096, 2048, 128, 128)],
    ids=["whole", "ragged", "more keys", "more queries"],
)
def test_wide_bins(T: int, S: int, height: int, width: int) -> None:
    q, k, v = tensors(T, S)
    bins = bins_of(T, S, height, width)
    found = check(q, k, v, CAUSAL, ForwardRequest(entropy=True, bins=bins))
    check_second(q, k, found.lse, CAUSAL, bins)


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["full", "causal"])
@pytest.mark.parametrize(("E", "entropy"), [(64, False), (64, True), (128, True)])
@pytest.mark.parametrize(("height", "width"), [(79, 79), (25, 41), (17, 23), (300, 157)])
def test_unaligned_bins(height: int, width: int, E: int, entropy: bool, mask: Mask | None) -> None:
    q, k, v = tensors(1000, 1003, E)
    bins = bins_of(1000, 1003, height, width)
    found = check(q, k, v, mask, ForwardRequest(entropy=entropy, bins=bins))
    check_second(q, k, found.lse, mask, bins)


@pytest.mark.parametrize(("T", "S"), [(200, 100), (1000, 129), (65, 4095), (64, 17)])
def test_unaligned_bins_with_different_lengths(T: int, S: int) -> None:
    """Fewer keys than a tile, fully masked queries, a single bin."""
    for bins in (bins_of(T, S, 79, 79), bins_of(T, S, T, S)):
        q, k, v = tensors(T, S)
        found = check(q, k, v, CAUSAL, ForwardRequest(bins=bins))
        check_second(q, k, found.lse, CAUSAL, bins)


def test_unaligned_bins_with_positions_before_heads() -> None:
    x = three(x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(1000, 1003, B=2, H=12, G=3))
    found = check(*x, CAUSAL, ForwardRequest(entropy=True, bins=bins_of(1000, 1003, 79, 79), top=8))
    assert found.threshold is not None
    thresholds = hopper_launch.thresholds_of(AttentionCall(*x, scale=1.0), bands_of(bound(CAUSAL, *x[:2])), 8)
    assert torch.equal(found.threshold, thresholds)


def test_unaligned_bins_along_one_axis() -> None:
    q, k, v = tensors(1000, 1003, 128)
    for height, width in ((64, 79), (79, 128), (256, 41), (17, 32)):
        check(q, k, v, CAUSAL, ForwardRequest(entropy=True, bins=bins_of(1000, 1003, height, width)))


def test_a_small_bin_next_to_a_large_one() -> None:
    """A sum on one side of an edge is not computed as a difference: all queries attend to one key next to the edge."""
    q, k, v = tensors(1000, 1003)
    bins = bins_of(1000, 1003, 79, 79)
    for key in (78, 79, 157, 158):  # the last of a bin and the first of the next, in either block of a tile
        one_large_key = k.clone()
        one_large_key[:, :, key] = 8
        equal_rows = torch.ones_like(q) * 0.25 + q * 1e-2
        found = check(equal_rows, one_large_key, v, None, ForwardRequest(bins=bins))
        check_second(equal_rows, one_large_key, found.lse, None, bins)


def test_it_agrees_with_the_forward_for_other_gpus() -> None:
    q, k, v = tensors(4096, 4096, 128)
    request = ForwardRequest(bins=bins_of(4096, 4096, 256, 256))
    found = check(q, k, v, CAUSAL, request)
    blocks = blocks_for(q.dtype, 128, 4096, 4096, 256)
    call = AttentionCall(q, k, v, 128**-0.5)
    other = forward(call, bands_of(bound(CAUSAL, q, k)), request, blocks=blocks)
    assert other.sums is not None
    assert_near(found.sums, other.sums.double(), "map", NEAR / 5)
    assert found.lse is not None
    assert (found.lse - present(other.lse)).abs().max() <= NEAR / 5
    torch.testing.assert_close(found.out, other.out, rtol=2**-7, atol=2**-7)


# --- edge cases -------------------------------------------------------------------------------------------------


def test_large_scores() -> None:
    """Around 150; in base 2 these are 200, which float32 represents to 1.5e-5, and sums to a few of those."""
    q, k, v = tensors(4096, 4096)
    check(q * 30, k, v, CAUSAL, ForwardRequest(entropy=True, bins=bins_of(4096, 4096, 256, 256)), near=5 * NEAR)


def test_equal_keys() -> None:
    """The entropy is the logarithm of the number of visible keys."""
    q, k, v = tensors(4096, 4096)
    equal_rows = k[:, :, :1].expand_as(k).contiguous()
    found = check(q, equal_rows, v, CAUSAL, ForwardRequest(entropy=True, bins=bins_of(4096, 4096, 256, 256)))
    assert found.entropy is not None
    visible = torch.arange(1, 4097, device=DEVICE, dtype=torch.float64)
    assert (found.entropy - visible.log()).abs().max() <= 1e-5


def test_positions_before_heads() -> None:
    """B T H E in memory, as a model's projections produce it, with several samples."""
    x = three(x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(2048, 2048, B=2, H=12, G=3))
    assert not any(one.is_contiguous() for one in x)
    check(*x, CAUSAL, ForwardRequest(entropy=True, bins=bins_of(2048, 2048, 128, 128)))


def test_a_number_of_heads_that_leaves_a_group_of_one() -> None:
    check(*tensors(2048, 2048, H=33, G=11), CAUSAL, ForwardRequest(entropy=True, bins=bins_of(2048, 2048, 128, 128)))


def test_bins_too_small_use_the_other_kernels() -> None:
    check(*tensors(500, 700), CAUSAL, ForwardRequest(lse=True, bins=bins_of(500, 700, 25, 9)), is_supported=False)


@pytest.mark.parametrize("why", ["width", "window"])
def test_unsupported_calls_use_the_other_kernels(why: str) -> None:
    q, k, v = tensors(200, 200, 80 if why == "width" else 64)
    check(q, k, v, Mask.window(50, 0) if why == "window" else None, ForwardRequest(lse=True), is_supported=False)


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["full", "causal"])
def test_attention_without_lse_is_observed_by_the_hopper_forward(
    mask: Mask | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, _ = tensors(2048, 2048)
    bins, calls, run = bins_of(2048, 2048, 128, 128), [], hopper_launch.forward

    def recorded(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(hopper_launch, "forward", recorded)
    see = See(map=16, sink=False)
    found = observe(AttentionCall(q, k, k, q.shape[-1] ** -0.5, bound=bound(mask, q, k), see=see))
    assert len(calls) == 1
    weights, lse = in_float64(q, k, mask)
    assert_near(found.map, pooled(weights, bins) / 128, "map")
    assert (present(found.lse).double() - lse).abs().max() <= NEAR


# --- bitwise reproducible ---------------------------------------------------------------------------------------


def assert_same(found: "ForwardResult", expected: "ForwardResult", heads: slice = slice(None)) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, present(other)[:, heads])


@pytest.mark.parametrize("width", [256, 200], ids=["whole tiles", "unaligned"])
def test_results_are_bitwise_equal_repeated_alone_and_in_groups(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each processor computes several tiles, in any order: the results do not depend on it."""
    q, k, v = tensors(4096, 4096, H=40, G=10)
    request = ForwardRequest(entropy=True, bins=bins_of(4096, 4096, width, width), top=8)
    first = check(q, k, v, CAUSAL, request)
    for _ in range(RUNS - 1):
        assert_same(forward_result(q, k, v, CAUSAL, request), first)
    assert_same(forward_result(q[:, 8:16], k[:, 2:4], v[:, 2:4], CAUSAL, request), first, slice(8, 16))
    monkeypatch.setattr(hopper_launch, "STRIP_LIMIT", 1)  # strips as large as the sums: some heads at a time
    assert_same(forward_result(q, k, v, CAUSAL, request), first)
    for name in ("L2_BYTES", "MIN_WAVES"):
        monkeypatch.setattr(hopper_launch, name, 0)  # one head at a time
    assert_same(forward_result(q, k, v, CAUSAL, request), first)


@pytest.mark.parametrize(("height", "width"), [(64, 128), (79, 79)], ids=["whole tiles", "unaligned"])
def test_rows_beyond_the_end_do_not_read_masked_keys(height: int, width: int) -> None:
    """The last rows of a tile beyond the end would attend to keys that every query masks, whatever these contain."""
    q, k, v = tensors(1016, 2048)
    mask, bins = Mask.causal(align="first"), bins_of(1016, 2048, height, width)
    clean = forward_result(q, k, v, mask, ForwardRequest(lse=True, bins=bins))
    k[:, :, 1016:], v[:, :, 1016:] = torch.nan, 0
    found = forward_result(q, k, v, mask, ForwardRequest(lse=True, bins=bins))
    assert_near(found.sums, present(clean.sums).double(), "map")
    assert found.lse is not None
    call = AttentionCall(q, k, v, q.shape[-1] ** -0.5)
    after = sum_over_queries(call, found.lse, bands_of(bound(mask, q, k)), bins=bins)
    assert_near(after.map, present(clean.sums).double(), "map of the second pass")
    assert after.received is not None
    assert after.received.isfinite().all()
    assert (after.received[:, :, 1016:] == 0).all()


# --- top keys ---------------------------------------------------------------------------------------------------


def check_top_keys(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, top: int = 8) -> "Candidates":
    """Lists contain every top key, and the results are the top keys by float64's scores."""
    found = forward_result(q, k, v, mask, ForwardRequest(lse=True, top=top))
    weights, _ = in_float64(q, k, mask)
    assert found.threshold is not None
    assert found.lse is not None
    bands = bands_of(bound(mask, q, k))
    call = AttentionCall(q, k, v, q.shape[-1] ** -0.5, bound=bound(mask, q, k))
    ((first, candidates),) = hopper_launch.candidates_of(call, bands, found.threshold)
    assert first == 0
    visible = (weights > 0).sum(-1).flatten(0, 1)
    assert (candidates.counts >= visible.clamp(max=top)).all(), "a list is too short"
    assert (hopper_launch.thresholds_of(call, bands, top) == found.threshold).all(), "as the forward finds them"
    top_keys = query_statistics(call, found.lse, top=top, threshold=found.threshold).top
    search_blocks = blocks_for(q.dtype, q.shape[3], q.shape[2], k.shape[2], table=SEARCH_BLOCKS)
    searched = query_statistics(call, found.lse, top=top, blocks=search_blocks).top
    assert top_keys is not None
    assert searched is not None
    expected = weights.topk(min(top, k.shape[2]), -1).values
    assert_near(top_keys.weights, expected, "weights of the top keys")
    assert_near(weights.gather(-1, top_keys.indices), expected, "weights at the indices of the top keys")
    assert (top_keys.indices.sort(-1).values.diff() > 0).all(), "a key twice"
    assert_near(top_keys.weights, searched.weights.double(), "weights, as the search finds them")
    return candidates


@pytest.mark.parametrize("E", [64, 128])
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
def test_top_keys_from_short_lists(E: int, mask: Mask | None) -> None:
    candidates = check_top_keys(*tensors(1000, 1000, E, H=4, G=2), mask)
    assert candidates.counts.float().mean() < 12
    check_top_keys(*tensors(300, 4095, E), mask, top=3)


def test_fewer_keys_than_requested() -> None:
    check_top_keys(*tensors(200, 5), None)
    check_top_keys(*tensors(200, 17), Mask.causal())


def test_equal_keys_overflow_the_lists_and_are_searched() -> None:
    """Of equal scores the first keys are kept."""
    q, k, v = tensors(200, 600)
    k = k[:, :, :1].expand(-1, -1, 600, -1).contiguous()
    found = forward_result(q, k, v, None, ForwardRequest(lse=True, top=8))
    assert found.lse is not None
    call = AttentionCall(q, k, v, q.shape[-1] ** -0.5)
    top_keys = query_statistics(call, found.lse, top=8, threshold=found.threshold).top
    assert top_keys is not None
    assert (top_keys.indices == torch.arange(8, device=q.device)).all()


def test_similar_neighbours_are_in_different_groups() -> None:
    """Keys that resemble their neighbours, as where a query attends to its surroundings."""
    q, k, v = tensors(512, 2048)
    smooth = torch.nn.functional.avg_pool1d(k.float().flatten(0, 1).mT, 31, 1, 15).mT.view_as(k) * 5
    candidates = check_top_keys(q, smooth.to(k.dtype).contiguous(), v, None)
    assert candidates.counts.float().mean() < 16


def test_heads_in_groups_have_the_same_top_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = tensors(300, 700, H=6, G=3)
    call = AttentionCall(q, k, v, q.shape[-1] ** -0.5, bound=bound(Mask.causal(), q, k))
    found = forward_result(q, k, v, Mask.causal(), ForwardRequest(lse=True, top=8))
    assert found.lse is not None

    def top_keys() -> "Top":
        top = query_statistics(call, present(found.lse), top=8, threshold=found.threshold).top
        assert top is not None
        return top

    whole = top_keys()
    monkeypatch.setattr(hopper_launch, "LIST_LIMIT", 1)
    for one, other in zip(top_keys(), whole, strict=True):
        assert (one == other).all()
