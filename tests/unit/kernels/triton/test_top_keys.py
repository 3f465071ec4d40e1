"""Top keys and entropy of each query, from q, k and the LSE, against float64."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from narrowing import Two, two
from tolerances import assert_close
from torch import Tensor

from kernel_calls import MASKS, pair
from regard import Mask
from regard.attention_call import AttentionCall
from regard.functional.attention import attention_scores, attention_weights
from regard.functional.statistics import entropy, top_keys
from regard.kernels.triton import hopper
from regard.kernels.triton import top_keys as top_keys_module
from regard.kernels.triton.second_pass import SecondPassArguments
from regard.kernels.triton.support import Blocks, MaskBands
from regard.kernels.triton.top_keys import (
    LIST_SIZE,
    MAX_LISTED_TOP,
    Candidates,
    QueryStatistics,
    TopOutput,
    query_statistics,
    rank,
)

SMALL = Blocks(rows=16, keys=16, warps=4, stages=2)
IDS = torch.tensor([3] * 5 + [7] * 12 + [5] * 5 + [9] * 8)


def check(
    q: Tensor,
    k: Tensor,
    device: str,
    mask: Mask | None = None,
    top: int = 3,
    operation: str = "weights",
    **options: Any,
) -> QueryStatistics:
    """Weights equal those of float64, highest first, each at its own key; and the entropy."""
    T, S = q.shape[2], k.shape[2]
    options = {"scale": q.shape[-1] ** -0.5, "softcap": None, "blocks": SMALL} | options
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = attention_scores(q.double(), wide, mask, None, options["scale"], options["softcap"])
    weights, lse = attention_weights(scores), scores.logsumexp(-1).float()
    q, k, lse = q.to(device), k.to(device), lse.to(device)
    bound = None if mask is None else mask.bind(q.shape[:2], T, S, q)
    call = AttentionCall(q, k, k, options.pop("scale"), bound=bound, softcap=options.pop("softcap"))
    found = query_statistics(call, lse, top=top, entropy=True, **options)
    assert found.top is not None
    assert found.entropy is not None
    indices = found.top.indices.cpu()
    assert_close(found.top.weights, top_keys(weights, top).weights, operation)
    assert_close(found.top.weights, weights.gather(-1, indices), operation)
    assert (indices.sort(-1).values.diff(dim=-1) > 0).all(), "a key is named twice"
    assert_close(found.entropy, entropy(weights), "statistic")
    return found


@pytest.mark.parametrize("top", [3, 32])
@pytest.mark.parametrize(
    "mask",
    [None, Mask.causal(), Mask.window(4, 1), Mask.segments(IDS) & Mask.causal()],
    ids=["full", "causal", "window", "packed"],
)
def test_masks(mask: Mask | None, top: int, device: str) -> None:
    """Also where fewer keys are visible than requested, and where there are fewer at all."""
    check(*pair(20, 30, H=1), device, mask, top)


@pytest.mark.parametrize(("T", "S"), [(1, 1), (17, 1), (1, 17), (17, 100)])
def test_lengths_that_fill_no_tile(T: int, S: int, device: str) -> None:
    check(*pair(T, S), device, top=5, blocks=None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_and_grouped_heads(dtype: torch.dtype, device: str) -> None:
    check(*pair(16, 20, 20, H=4, G=2, dtype=dtype), device, Mask.causal(), softcap=3.0)


@pytest.mark.parametrize("order", [1, -1])
def test_rising_and_falling_scores(order: int, device: str) -> None:
    """Every key beats all before it, or none does: the kept keys are replaced always, or never."""
    q, k = torch.ones(1, 1, 16, 16), (torch.arange(40.0) * order).reshape(1, 1, 40, 1).expand(1, 1, 40, 16)
    found = check(q, k, device, top=4, scale=0.01)
    assert found.top is not None
    best = torch.arange(39, 35, -1) if order == 1 else torch.arange(4)
    assert (found.top.indices.cpu() == best).all()


def test_equal_keys_are_ordered_by_position(device: str) -> None:
    q, k = pair(16, 40, H=1)
    found = check(q, k[:, :, :1].expand_as(k), device, top=6)
    assert found.top is not None
    assert (found.top.indices.cpu() == torch.arange(6)).all()
    torch.testing.assert_close(found.entropy, torch.full((1, 1, 16), 40.0, device=device).log(), rtol=1e-6, atol=0)


def test_one_visible_key(device: str) -> None:
    found = check(*pair(18, 18), device, Mask.window(0, 0), top=2)
    assert found.top is not None
    assert (found.top.indices[..., 0].cpu() == torch.arange(18)).all()
    assert (found.top.weights[..., 1] == 0).all()


def test_fully_masked_queries(device: str) -> None:
    found = check(*pair(20, 6), device, Mask.causal(), top=4)
    assert found.top is not None
    assert (found.top.weights[:, :, :14] == 0).all()


def test_large_scores(device: str) -> None:
    """|scores| around 150, where float32 has an LSE to 8e-6."""
    q, k = (x.to(device) for x in pair(16, 32, 32))
    scores = attention_scores(q.double() * 40, k.double().expand(1, 2, -1, -1))
    found = query_statistics(AttentionCall(q * 40, k, k, 32**-0.5), scores.logsumexp(-1).float(), top=5, entropy=True)
    right = top_keys(scores.softmax(-1), 5)
    assert scores.abs().max() > 120
    assert found.top is not None
    assert (found.top.indices == right.indices).all()
    # The last bit of a score of 150 is 1.5e-5; a GPU sums its products in another order, and differs by some of these.
    # And it flushes numbers below the smallest normal one to 0.
    torch.testing.assert_close(found.top.weights, right.weights.float(), rtol=2e-4, atol=2e-38)
    torch.testing.assert_close(found.entropy, entropy(scores.softmax(-1)).float(), rtol=0, atol=1e-4)


@settings(max_examples=6)
@given(
    T=st.integers(1, 40),
    S=st.integers(1, 40),
    top=st.integers(1, 9),
    left=st.none() | st.integers(0, 30),
    right=st.none() | st.integers(0, 30),
    few=st.booleans(),
)
def test_random_calls(T: int, S: int, top: int, left: int | None, right: int | None, few: bool) -> None:
    """`few`: only a few different scores, so that many are equal."""
    q, k = pair(T, S, H=1)
    if few:
        q, k = q.sign(), k.sign()
    mask = Mask.window(left, right)
    found = check(q, k, "cuda" if torch.cuda.is_available() else "cpu", mask, top)
    if few:  # equal keys in order, then masked ones
        assert found.top is not None
        ordered = attention_scores(q.double(), k.double(), mask).sort(dim=-1, descending=True, stable=True).indices
        assert torch.equal(found.top.indices.cpu(), ordered[..., :top])


@pytest.mark.parametrize(("T", "S"), [(0, 5), (5, 0)])
def test_without_queries_or_keys(T: int, S: int, device: str) -> None:
    q, k = (x.to(device) for x in pair(T, S))
    found = query_statistics(AttentionCall(q, k, k, 1.0), q.new_full((1, 2, T), -torch.inf), top=3, entropy=True)
    assert found.top is not None
    assert found.top.indices.shape == found.top.weights.shape == (1, 2, T, min(3, S))
    assert found.entropy is not None
    assert not found.entropy.any()


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SCALE = 0.125
GROUPS = 16
"""Groups of keys whose maximum scores a forward keeps."""


def even_pair(T: int, S: int, E: int = 16, *, dtype: torch.dtype = torch.float32, **options: Any) -> Two[Tensor]:
    """q and k with few bits: every dtype represents them and their products exactly, and many scores are equal."""
    return two((x * 2).round().clamp(-6, 6).div(4).to(dtype) for x in pair(T, S, E, **options))


def scores_of(q: Tensor, k: Tensor, mask: Mask | None) -> Tensor:
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    return attention_scores(q.double(), wide, mask, None, SCALE)


def threshold_of(scores: Tensor, top: int) -> Tensor:
    """The top-th largest group maximum: at least that many keys reach it."""
    padded = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % GROUPS), value=-torch.inf)
    return padded.unflatten(-1, (-1, GROUPS)).amax(-2).sort(-1, descending=True).values[..., top - 1]


def candidates_of(scores: Tensor, threshold: Tensor) -> Candidates:
    """The visible keys that reach the threshold, in random order, up to LIST_SIZE; other slots hold any number."""
    reach = ((scores >= threshold[..., None]) & (scores > -torch.inf)).flatten(0, 1)
    mixed = torch.randperm(reach.shape[-1], generator=torch.Generator().manual_seed(1))
    order = mixed[reach[..., mixed].int().sort(dim=-1, descending=True, stable=True).indices][..., :LIST_SIZE]
    keys = torch.full((*reach.shape[:2], LIST_SIZE), 2**31 - 1)
    keys[..., : order.shape[-1]] = order
    return Candidates(reach.sum(-1).int().to(DEVICE), keys.int().to(DEVICE))


def check_ranked(indices: Tensor, weights: Tensor, scores: Tensor, top: int) -> None:
    """The higher score first, the earlier of equal ones; then masked keys."""
    right = scores.sort(dim=-1, descending=True, stable=True).indices[..., :top]
    torch.testing.assert_close(indices.cpu(), right, rtol=0, atol=0)
    assert_close(weights, attention_weights(scores).gather(-1, right), "weights")


def check_rank(
    q: Tensor, k: Tensor, mask: Mask | None = None, top: int = MAX_LISTED_TOP, *, scores: Tensor | None = None
) -> None:
    """All lists fit, in two groups of heads; the outputs are filled with invalid numbers before."""
    scores = scores_of(q, k, mask) if scores is None else scores
    top = min(top, k.shape[2])
    all_candidates = candidates_of(scores, threshold_of(scores, top))
    assert (all_candidates.counts <= LIST_SIZE).all()
    shape = (*q.shape[:3], top)
    indices, weights = torch.full(shape, -1, device=DEVICE), torch.full(shape, torch.nan, device=DEVICE)
    q, k, lse = q.to(DEVICE), k.to(DEVICE), scores.logsumexp(-1).float().to(DEVICE)
    heads = q.shape[0] * q.shape[1]
    for first, end in ((0, heads // 3), (heads // 3, heads)):
        if first < end:
            some = Candidates(*(x[first:end] for x in all_candidates))
            args = SecondPassArguments.of(AttentionCall(q, k, k, SCALE), lse)
            rank(args, q, k, some, first, TopOutput(indices, weights, top))
    check_ranked(indices, weights, scores, top)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("E", [64, 80, 128])
def test_widths_and_dtypes(E: int, dtype: torch.dtype) -> None:
    check_rank(*even_pair(8, 50, E, dtype=dtype, H=1))


@pytest.mark.parametrize(("name", "top"), [("causal", 8), ("window", 8), ("padding", 3), ("apart", 1)])
def test_queries_with_few_visible_keys(name: str, top: int) -> None:
    """They get the first masked keys, with a weight of 0."""
    check_rank(*even_pair(21, 33, B=2, H=1), MASKS[name], top)


def test_lists_of_fully_masked_queries() -> None:
    check_rank(*even_pair(20, 6, H=1), Mask.causal())


def test_grouped_heads_of_several_samples() -> None:
    check_rank(*even_pair(5, 40, B=2, H=6, G=2))


def test_positions_before_heads() -> None:
    q, k = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in even_pair(9, 40, H=4, G=2))
    check_rank(q, k)


@pytest.mark.parametrize("S", [16, 17, 31, 32])
def test_half_full_and_full_lists(S: int) -> None:
    """All keys are equal, so all pass: the earliest come first."""
    q, k = even_pair(9, S, H=1)
    check_rank(q, k[:, :, :1].expand_as(k))


def test_zero_and_minus_zero_are_equal() -> None:
    """Scores too small for float32, of either sign: 0 and -0 are equal."""
    q, k = torch.zeros(1, 1, 9, 16), torch.zeros(1, 1, 20, 16)
    q[..., 0], k[..., 0] = 1e-22, torch.tensor([-1.4e-23, 1.4e-23]).repeat(10)
    check_rank(q, k, scores=torch.zeros(1, 1, 9, 20, dtype=torch.float64))


def test_long_lists_beside_short_ones() -> None:
    """For half of the queries all keys have the same score."""
    q, k = even_pair(16, 30, H=1)
    q[:, :, ::2] = 0
    check_rank(q, k)


def test_nan_scores_come_last() -> None:
    q, k = (x.to(DEVICE) for x in even_pair(8, 12, H=1))
    k[:, :, 5] = torch.nan
    keys = torch.full((1, 8, LIST_SIZE), -1, dtype=torch.int32, device=DEVICE)
    keys[..., :4] = torch.tensor([7, 5, 11, 2])
    counts = torch.full((1, 8), 4, dtype=torch.int32, device=DEVICE)
    top_output = TopOutput(
        torch.full((1, 1, 8, 6), -1, device=DEVICE), torch.full((1, 1, 8, 6), torch.nan, device=DEVICE), 6
    )
    rank(
        SecondPassArguments.of(AttentionCall(q, k, k, SCALE), torch.zeros(1, 1, 8, device=DEVICE)),
        q,
        k,
        Candidates(counts, keys),
        0,
        top_output,
    )
    assert (top_output.indices[..., 3:] == torch.tensor([5, 0, 1], device=DEVICE)).all()
    assert (top_output.weights[..., :3] > 0).all()
    assert (top_output.weights[..., 3:] == 0).all()


@settings(max_examples=10)
@given(
    T=st.integers(1, 20),
    S=st.integers(1, LIST_SIZE),
    top=st.integers(1, MAX_LISTED_TOP),
    left=st.none() | st.integers(0, 20),
    right=st.none() | st.integers(0, 20),
    bits=st.sampled_from([0.25, 1.0, 4.0]),
)
def test_random_lists(T: int, S: int, top: int, left: int | None, right: int | None, bits: float) -> None:
    """bits: how different the scores are."""
    q, k = (x * bits for x in even_pair(T, S, H=1))
    check_rank(q.round(), k, Mask.window(left, right), top)


# --- lists in the place of the search ----------------------------------------------------------------------------


@pytest.fixture
def hopper_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tensor, MaskBands]]:
    """In the place of the Hopper kernels: lists for three heads at a time; returns the calls."""
    calls: list[tuple[Tensor, MaskBands]] = []
    fake = SimpleNamespace(supports=_supports, thresholds_of=_thresholds_of, candidates_of=_lister(calls))
    monkeypatch.setattr(hopper, "is_available", lambda device: True)
    monkeypatch.setattr(hopper, "launch", fake, raising=False)
    monkeypatch.setitem(sys.modules, "regard.kernels.triton.hopper.launch", fake)
    return calls


def _supports(call: AttentionCall, bands: MaskBands, bins: None) -> bool:
    return bands.queries is None and call.softcap is None and call.scale == SCALE and bins is None


def _scores_for(call: AttentionCall, bands: MaskBands) -> Tensor:
    return scores_of(call.q.cpu(), call.k.cpu(), None if bands.right is None else Mask.causal())


def _thresholds_of(call: AttentionCall, bands: MaskBands, top: int) -> Tensor:
    return (threshold_of(_scores_for(call, bands), top) / SCALE).float().to(DEVICE)


def _lister(calls: list[tuple[Tensor, MaskBands]]) -> Callable[..., Iterator[tuple[int, Candidates]]]:
    def lists(call: AttentionCall, bands: MaskBands, threshold: Tensor) -> Iterator[tuple[int, Candidates]]:
        calls.append((threshold, bands))
        found = candidates_of(_scores_for(call, bands), threshold.cpu() * SCALE)
        for first in range(0, len(found.counts), 3):
            yield first, Candidates(*(x[first : first + 3] for x in found))

    return lists


def inputs_with_ties() -> list[Tensor]:
    """Some queries for which all keys are equal, and keys of which half are equal: far more than a list holds."""
    q, k = even_pair(24, 70, B=2, H=2, G=1)
    q[:, :, 5:12:3] = 0
    k[1, :, 10:60] = k[1, :, :1]
    return [q, k]


@pytest.mark.parametrize(("top", "mask"), [(8, None), (5, Mask.causal()), (1, None)], ids=["full", "causal", "one"])
def test_lists_that_overflow_are_searched(top: int, mask: Mask | None, hopper_calls: list[Any]) -> None:
    q, k = inputs_with_ties()
    scores = scores_of(q, k, mask)
    threshold = threshold_of(scores, top).float()
    counts = candidates_of(scores, threshold.double()).counts
    assert 0 < (counts > LIST_SIZE).sum() < counts.numel()
    found = _top_of(q, k, scores, threshold, mask, top=top)
    check_ranked(*found, scores, top)
    assert len(hopper_calls) == 1


def test_only_overflowed_queries_are_searched(hopper_calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of ranking stay: here they are marked with an impossible index."""
    q, k = inputs_with_ties()
    scores = scores_of(q, k, None)
    threshold = threshold_of(scores, 4).float()
    overflowed = (candidates_of(scores, threshold.double()).counts > LIST_SIZE).unflatten(0, q.shape[:2])

    def mark(
        args: SecondPassArguments, q: Tensor, k: Tensor, candidates: Candidates, first: int, top_output: TopOutput
    ) -> None:
        top_output.indices.flatten(0, 1)[first : first + len(candidates.counts)] = -7

    monkeypatch.setattr(top_keys_module, "rank", mark)
    indices, _ = _top_of(q, k, scores, threshold, None, top=4)
    assert ((indices == -7).all(-1) == ~overflowed).all()
    assert ((indices != -7).all(-1) == overflowed).all()


@pytest.mark.parametrize(
    ("mask", "options"),
    [
        (None, {"top": MAX_LISTED_TOP + 1}),
        (None, {"softcap": 2.0}),
        (None, {"entropy": True}),
        (None, {"top": None, "entropy": True}),
        (Mask.segments(torch.arange(70) // 20), {}),
    ],
    ids=["more", "softcap", "entropy", "no top", "segments"],
)
def test_calls_that_do_not_use_lists(mask: Mask | None, options: dict[str, Any], hopper_calls: list[Any]) -> None:
    q, k = (x.to(DEVICE) for x in even_pair(16, 70))
    bound = None if mask is None else mask.bind(q.shape[:2], 16, 70, q)
    lse = torch.zeros(1, 2, 16, device=DEVICE)
    call = AttentionCall(q, k, k, SCALE, bound=bound, softcap=options.get("softcap"))
    requested: dict[str, Any] = {"top": 4} | {name: value for name, value in options.items() if name != "softcap"}
    found = query_statistics(call, lse, **{"threshold": lse} | requested)
    right = query_statistics(call, lse, **requested | {"threshold": None})
    assert not hopper_calls
    assert (found.top is None) == (right.top is None)
    if found.top is not None and right.top is not None:
        assert torch.equal(found.top.indices, right.top.indices)


def test_thresholds_are_computed_if_the_forward_gave_none(hopper_calls: list[Any]) -> None:
    q, k = inputs_with_ties()
    scores = scores_of(q, k, Mask.causal())
    check_ranked(*_top_of(q, k, scores, None, Mask.causal(), top=5), scores, 5)
    assert len(hopper_calls) == 1


def _top_of(
    q: Tensor, k: Tensor, scores: Tensor, threshold: Tensor | None, mask: Mask | None, top: int
) -> tuple[Tensor, Tensor]:
    q, k, lse = q.to(DEVICE), k.to(DEVICE), scores.logsumexp(-1).float().to(DEVICE)
    bound = None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q)
    unscaled = None if threshold is None else threshold.to(DEVICE) / SCALE
    found = query_statistics(AttentionCall(q, k, k, SCALE, bound=bound), lse, top=top, threshold=unscaled)
    assert found.top is not None
    return found.top.indices, found.top.weights
