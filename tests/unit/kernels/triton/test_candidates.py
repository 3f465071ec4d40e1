"""The top keys from short lists, against float64; and lists in the place of the search, from a stand-in for Hopper."""

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
from regard.kernels.triton import hopper, top_keys
from regard.kernels.triton.candidates import LIST_SIZE, MAX_LISTED_TOP, Candidates, TopOutput, rank
from regard.kernels.triton.mask_bands import MaskBands
from regard.kernels.triton.second_pass import SecondPassArguments
from regard.kernels.triton.top_keys import query_statistics

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


def check(indices: Tensor, weights: Tensor, scores: Tensor, top: int) -> None:
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
    check(indices, weights, scores, top)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("E", [64, 80, 128])
def test_widths_and_dtypes(E: int, dtype: torch.dtype) -> None:
    check_rank(*even_pair(8, 50, E, dtype=dtype, H=1))


@pytest.mark.parametrize(("name", "top"), [("causal", 8), ("window", 8), ("padding", 3), ("apart", 1)])
def test_queries_with_few_visible_keys(name: str, top: int) -> None:
    """They get the first masked keys, with a weight of 0."""
    check_rank(*even_pair(21, 33, B=2, H=1), MASKS[name], top)


def test_fully_masked_queries() -> None:
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
    check(*found, scores, top)
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

    monkeypatch.setattr(top_keys, "rank", mark)
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
    check(*_top_of(q, k, scores, None, Mask.causal(), top=5), scores, 5)
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
