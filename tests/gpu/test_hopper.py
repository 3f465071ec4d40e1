"""The kernels for Hopper GPUs against float64: lengths, edges, bins, layouts, corners; and to the last bit every time.

Triton compiles anew for numbers that are 1, or multiples of 16, or not: sizes are chosen so that tests share kernels.
"""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import Mask, See
from regard.functional.attention import attention_scores, attention_weights

if AT_HAND := torch.cuda.is_available():  # where there is no such device there may be no Triton
    from regard.kernels.tiles import Bins
    from regard.kernels.triton import hopper
    from regard.kernels.triton.candidates import Survivors
    from regard.kernels.triton.forward_launch import forward
    from regard.kernels.triton.key_sums import sums
    from regard.kernels.triton.mask_bands import sight_of
    from regard.kernels.triton.observe import observe
    from regard.kernels.triton.support import Asked, Told
    from regard.kernels.triton.tile_sizes import SEARCHING, blocks_for
    from regard.kernels.triton.top_keys import of_queries
    from regard.records import Top

    if AT_HAND := hopper.is_at_hand(torch.device("cuda")):
        from regard.kernels.triton.hopper import launch as quicker
        from regard.kernels.triton.hopper import launch as room

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not AT_HAND, reason="needs a Hopper GPU, and a Triton whose Gluon is known"),
]

DEVICE = "cuda"
CAUSAL = Mask.causal()
RUNS = 20
NEAR = 1e-4
"""Of sums of weights, relative; of the LSE, in nats. Entropy may be ten times as far off."""
ROUNDED = {torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""Weights are rounded before they meet the values, and so is the output: by half of this each, relative."""


def tensors(
    T: int, S: int, E: int = 64, *, B: int = 1, H: int = 8, G: int = 2, dtype: torch.dtype = torch.bfloat16
) -> list[Tensor]:
    make = torch.Generator(DEVICE).manual_seed(0)
    shapes = ((B, H, T, E), (B, G, S, E), (B, G, S, E))
    return [torch.randn(shape, generator=make, device=DEVICE).to(dtype) for shape in shapes]


def bins_of(T: int, S: int, high: int, wide: int) -> "Bins":
    """The last ones may be ragged."""
    return Bins(high, wide, R=-(-T // high), C=-(-S // wide))


def bound(mask: Mask | None, q: Tensor, k: Tensor) -> Any:
    return None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q)


def told(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, asked: "Asked", *, fits: bool = True) -> "Told":
    """What the pass tells; whether it was that of this room follows from `fits`."""
    sight, scale = sight_of(bound(mask, q, k)), q.shape[-1] ** -0.5
    assert quicker.fits(q, k, v, sight=sight, scale=scale, softcap=None, bins=asked.bins) == fits
    return forward(q, k, v, sight, scale=scale, asked=asked)


def in_float64(q: Tensor, k: Tensor, mask: Mask | None) -> tuple[Tensor, Tensor]:
    """Weights and LSE."""
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), wide, mask, None, q.shape[-1] ** -0.5)
    return attention_weights(scores), scores.logsumexp(-1)


def pooled(weights: Tensor, bins: "Bins") -> Tensor:
    """Their sums over the bins."""
    T, S = weights.shape[-2:]
    whole = torch.nn.functional.pad(weights, (0, bins.C * bins.wide - S, 0, bins.R * bins.high - T))
    return whole.unflatten(-1, (bins.C, bins.wide)).sum(-1).unflatten(-2, (bins.R, bins.high)).sum(-2)


def assert_near(found: Tensor | None, expected: Tensor, what: str, near: float = NEAR) -> None:
    """To `near` of each value, of those above a millionth; what is smaller only as if it were a millionth."""
    assert found is not None, what
    far = (found.double() - expected).abs() / expected.abs().clamp(min=1e-6)
    assert far.max() <= near, f"{what}: {far.max():.1e} off"


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Mask | None,
    asked: "Asked",
    *,
    near: float = NEAR,
    fits: bool = True,
) -> "Told":
    """All that was asked for is what float64 says, and nothing else is told."""
    found = told(q, k, v, mask, asked, fits=fits)
    weights, lse = in_float64(q, k, mask)
    wide = v.double().repeat_interleave(q.shape[1] // v.shape[1], 1)
    off = (found.out.double() - weights @ wide).abs()
    allowed = (ROUNDED[q.dtype] + near) * (weights @ wide.abs())  # nothing where nothing is seen
    assert (off <= allowed).all(), f"output: {(off - allowed).max():.1e} beyond"
    assert (found.lse is not None) == (asked.lse or asked.bins is not None)
    assert (found.entropy is not None) == asked.entropy
    if found.lse is not None:
        assert (found.lse.isinf() == lse.isinf()).all()
        assert (found.lse.double() - lse).nan_to_num(0).abs().max() <= NEAR
    if found.entropy is not None:
        assert (found.entropy - torch.special.entr(weights).sum(-1)).abs().max() <= 10 * NEAR
    if asked.bins is not None:
        assert_near(found.sums, pooled(weights, asked.bins), "map", near)
    return found


def check_second(q: Tensor, k: Tensor, lse: Tensor | None, mask: Mask | None, bins: "Bins") -> None:
    """Map and received from the LSE alone are what float64 says."""
    assert lse is not None
    weights, _ = in_float64(q, k, mask)
    found = sums(q, k, lse, sight_of(bound(mask, q, k)), scale=q.shape[-1] ** -0.5, bins=bins)
    assert_near(found.map, pooled(weights, bins), "map of the second pass")
    assert_near(found.received, weights.sum(-2), "received")


# --- lengths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("T", "S"), list(product((65, 127, 200, 1000), (17, 129, 4095))))
def test_lengths_that_fill_no_tile(T: int, S: int) -> None:
    check(*tensors(T, S), None, Asked(lse=True, entropy=True))


# Not those whose difference is a multiple of 16.
@pytest.mark.parametrize(
    ("T", "S"),
    [(127, 17), (1000, 17), (127, 129), (200, 129), (1000, 129), (65, 4095), (200, 4095), (1000, 4095)],
)
def test_an_edge_where_lengths_differ(T: int, S: int) -> None:
    """Also with more queries than keys: the first ones see nothing."""
    found = check(*tensors(T, S, 128, dtype=torch.float16), CAUSAL, Asked(lse=True, entropy=True))
    blind = max(0, T - S)
    assert (found.out[:, :, :blind] == 0).all()
    assert found.entropy is not None
    assert (found.entropy[:, :, :blind] == 0).all()
    assert found.lse is not None
    assert (found.lse[:, :, :blind] == -torch.inf).all()


def test_one_head_of_one_key() -> None:
    q, k, v = tensors(64, 1, 128, H=1, G=1)
    found = check(q, k, v, CAUSAL, Asked(lse=True, entropy=True))
    assert torch.equal(found.out[:, :, -1:], v), "who sees one key takes its values as they are"


def test_nothing_is_asked_for_of_many_heads() -> None:
    """Each processor takes several tiles."""
    check(*tensors(4096, 4096, H=40, G=10, dtype=torch.float16), CAUSAL, Asked())


# --- bins -------------------------------------------------------------------------------------------------------


def test_narrow_bins_of_which_the_last_is_ragged() -> None:
    q, k, v = tensors(1000, 1000, 128, B=2, H=12, G=3)
    bins = bins_of(1000, 1000, 32, 32)
    found = check(q, k, v, None, Asked(bins=bins))
    check_second(q, k, found.lse, None, bins)


@pytest.mark.parametrize("T", [256, 1024])
def test_the_narrowest_bins(T: int) -> None:
    check(*tensors(T, 1024, dtype=torch.float16), CAUSAL, Asked(entropy=True, bins=bins_of(T, 1024, 16, 16)))


@pytest.mark.parametrize(
    ("T", "S", "high", "wide"),
    [(4096, 4096, 256, 256), (4080, 4080, 256, 256), (64, 4096, 64, 256), (4096, 2048, 128, 128)],
    ids=["whole", "ragged", "more keys", "more queries"],
)
def test_wide_bins(T: int, S: int, high: int, wide: int) -> None:
    q, k, v = tensors(T, S)
    bins = bins_of(T, S, high, wide)
    found = check(q, k, v, CAUSAL, Asked(entropy=True, bins=bins))
    check_second(q, k, found.lse, CAUSAL, bins)


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["full", "causal"])
@pytest.mark.parametrize(("E", "entropy"), [(64, False), (64, True), (128, True)])
@pytest.mark.parametrize(("high", "wide"), [(79, 79), (25, 41), (17, 23), (300, 157)])
def test_bins_that_begin_anywhere(high: int, wide: int, E: int, entropy: bool, mask: Mask | None) -> None:
    q, k, v = tensors(1000, 1003, E)
    bins = bins_of(1000, 1003, high, wide)
    found = check(q, k, v, mask, Asked(entropy=entropy, bins=bins))
    check_second(q, k, found.lse, mask, bins)


@pytest.mark.parametrize(("T", "S"), [(200, 100), (1000, 129), (65, 4095), (64, 17)])
def test_bins_that_begin_anywhere_where_lengths_differ(T: int, S: int) -> None:
    """Fewer keys than a tile has, queries that see nothing, one bin alone."""
    for bins in (bins_of(T, S, 79, 79), bins_of(T, S, T, S)):
        q, k, v = tensors(T, S)
        found = check(q, k, v, CAUSAL, Asked(bins=bins))
        check_second(q, k, found.lse, CAUSAL, bins)


def test_bins_that_begin_anywhere_of_samples_with_positions_before_heads() -> None:
    x = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(1000, 1003, B=2, H=12, G=3)]
    found = check(*x, CAUSAL, Asked(entropy=True, bins=bins_of(1000, 1003, 79, 79), top=8))
    assert found.threshold is not None
    assert torch.equal(found.threshold, quicker.thresholds_of(*x[:2], sight_of(bound(CAUSAL, *x[:2])), top=8))


def test_one_of_both_axes_has_bins_that_begin_anywhere() -> None:
    q, k, v = tensors(1000, 1003, 128)
    for high, wide in ((64, 79), (79, 128), (256, 41), (17, 32)):
        check(q, k, v, CAUSAL, Asked(entropy=True, bins=bins_of(1000, 1003, high, wide)))


def test_a_faint_bin_beside_a_bright_one() -> None:
    """What lies on the one side of an edge is not what is left of the whole: all queries look at one key beside it."""
    q, k, v = tensors(1000, 1003)
    bins = bins_of(1000, 1003, 79, 79)
    for key in (78, 79, 157, 158):  # the last of a bin and the first of the next, in either block of a tile
        bright = k.clone()
        bright[:, :, key] = 8
        same = torch.ones_like(q) * 0.25 + q * 1e-2
        found = check(same, bright, v, None, Asked(bins=bins))
        check_second(same, bright, found.lse, None, bins)


def test_it_agrees_with_the_forward_that_other_gpus_take() -> None:
    q, k, v = tensors(4096, 4096, 128)
    asked = Asked(bins=bins_of(4096, 4096, 256, 256))
    found = check(q, k, v, CAUSAL, asked)
    blocks = blocks_for(q.dtype, 128, 4096, 4096, 256)
    other = forward(q, k, v, sight_of(bound(CAUSAL, q, k)), scale=128**-0.5, asked=asked, blocks=blocks)
    assert other.sums is not None
    assert_near(found.sums, other.sums.double(), "map", NEAR / 5)
    assert found.lse is not None
    assert (found.lse - other.lse).abs().max() <= NEAR / 5
    torch.testing.assert_close(found.out, other.out, rtol=2**-7, atol=2**-7)


# --- corners ----------------------------------------------------------------------------------------------------


def test_large_scores() -> None:
    """Around 150; in base 2 these are 200, which float32 holds to 1.5e-5, and a sum of products to a few of those."""
    q, k, v = tensors(4096, 4096)
    check(q * 30, k, v, CAUSAL, Asked(entropy=True, bins=bins_of(4096, 4096, 256, 256)), near=5 * NEAR)


def test_equal_keys() -> None:
    """The entropy is the logarithm of how many are seen."""
    q, k, v = tensors(4096, 4096)
    same = k[:, :, :1].expand_as(k).contiguous()
    found = check(q, same, v, CAUSAL, Asked(entropy=True, bins=bins_of(4096, 4096, 256, 256)))
    assert found.entropy is not None
    visible = torch.arange(1, 4097, device=DEVICE, dtype=torch.float64)
    assert (found.entropy - visible.log()).abs().max() <= 1e-5


def test_positions_before_heads() -> None:
    """B T H E in memory, as a model's projections leave it, of several samples."""
    x = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(2048, 2048, B=2, H=12, G=3)]
    assert not any(one.is_contiguous() for one in x)
    check(*x, CAUSAL, Asked(entropy=True, bins=bins_of(2048, 2048, 128, 128)))


def test_heads_of_which_the_last_is_worked_on_alone() -> None:
    check(*tensors(2048, 2048, H=33, G=11), CAUSAL, Asked(entropy=True, bins=bins_of(2048, 2048, 128, 128)))


def test_bins_too_small_take_the_other_road() -> None:
    check(*tensors(500, 700), CAUSAL, Asked(lse=True, bins=bins_of(500, 700, 25, 9)), fits=False)


@pytest.mark.parametrize("why", ["width", "window"])
def test_what_does_not_fit_takes_the_other_road(why: str) -> None:
    q, k, v = tensors(200, 200, 80 if why == "width" else 64)
    check(q, k, v, Mask.window(50, 0) if why == "window" else None, Asked(lse=True), fits=False)


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["full", "causal"])
def test_an_attention_without_lse_is_observed_by_it(mask: Mask | None, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, _ = tensors(2048, 2048)
    bins, calls, run = bins_of(2048, 2048, 128, 128), [], quicker.forward

    def noted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(quicker, "forward", noted)
    found = observe(q, k, mask=bound(mask, q, k), scale=q.shape[-1] ** -0.5, see=See(map=16, sink=False))
    assert len(calls) == 1
    weights, lse = in_float64(q, k, mask)
    assert_near(found.map, pooled(weights, bins) / 128, "map")
    assert (found.lse.double() - lse).abs().max() <= NEAR


# --- to the last bit --------------------------------------------------------------------------------------------


def assert_same(found: "Told", expected: "Told", heads: slice = slice(None)) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one, other[:, heads])


@pytest.mark.parametrize("wide", [256, 200], ids=["whole tiles", "anywhere"])
def test_many_heads_at_once_again_alone_and_in_groups(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each processor takes several tiles, in whatever order: what is found does not depend on it."""
    q, k, v = tensors(4096, 4096, H=40, G=10)
    asked = Asked(entropy=True, bins=bins_of(4096, 4096, wide, wide), top=8)
    first = check(q, k, v, CAUSAL, asked)
    for _ in range(RUNS - 1):
        assert_same(told(q, k, v, CAUSAL, asked), first)
    assert_same(told(q[:, 8:16], k[:, 2:4], v[:, 2:4], CAUSAL, asked), first, slice(8, 16))
    monkeypatch.setattr(room, "ROOM", 1)  # then strips are as many as there are sums: some heads at a time
    assert_same(told(q, k, v, CAUSAL, asked), first)
    for name in ("CACHED", "TURNS"):
        monkeypatch.setattr(quicker, name, 0)  # one head at a time
    assert_same(told(q, k, v, CAUSAL, asked), first)


@pytest.mark.parametrize(("high", "wide"), [(64, 128), (79, 79)], ids=["whole tiles", "anywhere"])
def test_rows_that_are_not_there_look_at_nothing(high: int, wide: int) -> None:
    """A tile's last rows would see further than any query: at keys that nobody sees, whatever these hold."""
    q, k, v = tensors(1016, 2048)
    mask, bins = Mask.causal(align="first"), bins_of(1016, 2048, high, wide)
    clean = told(q, k, v, mask, Asked(lse=True, bins=bins))
    k[:, :, 1016:], v[:, :, 1016:] = torch.nan, 0
    found = told(q, k, v, mask, Asked(lse=True, bins=bins))
    assert_near(found.sums, clean.sums.double(), "map")
    assert found.lse is not None
    after = sums(q, k, found.lse, sight_of(bound(mask, q, k)), scale=q.shape[-1] ** -0.5, bins=bins)
    assert_near(after.map, clean.sums.double(), "map of the second pass")
    assert after.received is not None
    assert after.received.isfinite().all()
    assert (after.received[:, :, 1016:] == 0).all()


# --- the strongest keys -----------------------------------------------------------------------------------------


def check_strongest(q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, top: int = 8) -> "Survivors":
    """Lists leave no strongest key out, and what is made of them are the strongest keys by float64's scores."""
    found = told(q, k, v, mask, Asked(lse=True, top=top))
    weights, _ = in_float64(q, k, mask)
    assert found.threshold is not None
    assert found.lse is not None
    sight, scale = sight_of(bound(mask, q, k)), q.shape[-1] ** -0.5
    ((first, survivors),) = quicker.survivors_of(q, k, found.threshold, sight)
    assert first == 0
    seen = (weights > 0).sum(-1).flatten(0, 1)
    assert (survivors.counts >= seen.clamp(max=top)).all(), "a list is too short"
    options: dict[str, Any] = {"mask": bound(mask, q, k), "scale": scale, "top": top}
    assert (quicker.thresholds_of(q, k, sight, top=top) == found.threshold).all(), "as the forward finds them"
    strongest = of_queries(q, k, found.lse, **options, threshold=found.threshold).top
    by_search = blocks_for(q.dtype, q.shape[3], q.shape[2], k.shape[2], table=SEARCHING)
    searched = of_queries(q, k, found.lse, **options, blocks=by_search).top
    assert strongest is not None
    assert searched is not None
    expected = weights.topk(min(top, k.shape[2]), -1).values
    assert_near(strongest.weights, expected, "weights of the strongest")
    assert_near(weights.gather(-1, strongest.indices), expected, "weights at the indices of the strongest")
    assert (strongest.indices.sort(-1).values.diff() > 0).all(), "a key twice"
    assert_near(strongest.weights, searched.weights.double(), "weights, as the search finds them")
    return survivors


@pytest.mark.parametrize("E", [64, 128])
@pytest.mark.parametrize("mask", [None, Mask.causal()], ids=["full", "causal"])
def test_the_strongest_keys_come_from_short_lists(E: int, mask: Mask | None) -> None:
    survivors = check_strongest(*tensors(1000, 1000, E, H=4, G=2), mask)
    assert survivors.counts.float().mean() < 12
    check_strongest(*tensors(300, 4095, E), mask, top=3)


def test_few_keys_are_all_strongest() -> None:
    check_strongest(*tensors(200, 5), None)
    check_strongest(*tensors(200, 17), Mask.causal())


def test_equal_keys_overflow_the_lists_and_are_searched() -> None:
    """Of equal scores the first keys are kept."""
    q, k, v = tensors(200, 600)
    k = k[:, :, :1].expand(-1, -1, 600, -1).contiguous()
    found = told(q, k, v, None, Asked(lse=True, top=8))
    assert found.lse is not None
    strongest = of_queries(q, k, found.lse, scale=q.shape[-1] ** -0.5, top=8, threshold=found.threshold).top
    assert strongest is not None
    assert (strongest.indices == torch.arange(8, device=q.device)).all()


def test_neighbours_are_in_different_lists() -> None:
    """Keys that resemble their neighbours: as where a query looks around itself."""
    q, k, v = tensors(512, 2048)
    smooth = torch.nn.functional.avg_pool1d(k.float().flatten(0, 1).mT, 31, 1, 15).mT.view_as(k) * 5
    survivors = check_strongest(q, smooth.to(k.dtype).contiguous(), v, None)
    assert survivors.counts.float().mean() < 16


def test_heads_in_groups_have_the_same_strongest_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = tensors(300, 700, H=6, G=3)
    mask, scale = bound(Mask.causal(), q, k), q.shape[-1] ** -0.5
    found = told(q, k, v, Mask.causal(), Asked(lse=True, top=8))
    assert found.lse is not None

    def strongest() -> "Top":
        top = of_queries(q, k, found.lse, mask=mask, scale=scale, top=8, threshold=found.threshold).top
        assert top is not None
        return top

    whole = strongest()
    monkeypatch.setattr(quicker, "LISTED", 1)
    for one, other in zip(strongest(), whole, strict=True):
        assert (one == other).all()
