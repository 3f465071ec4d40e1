"""The strongest keys out of short lists, against float64; and the lists in the place of the search, by a stand-in."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import assert_close
from torch import Tensor

from kernel_calls import MASKS, pair
from regard import Mask
from regard.functional.attention import attention_scores, attention_weights
from regard.kernels.triton import hopper, top_keys
from regard.kernels.triton.candidates import FEW, ROOM, Kept, Survivors, rank
from regard.kernels.triton.mask_bands import Sight
from regard.kernels.triton.second_pass import Given
from regard.kernels.triton.top_keys import of_queries

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SCALE = 0.125
GROUPS = 16
"""Of keys, whose greatest scores a forward remembers."""


def even_pair(T: int, S: int, E: int = 16, *, dtype: torch.dtype = torch.float32, **options: Any) -> list[Tensor]:
    """q and k of so few bits that every dtype holds them and their products, and that many scores are equal."""
    return [(x * 2).round().clamp(-6, 6).div(4).to(dtype) for x in pair(T, S, E, **options)]


def scores_of(q: Tensor, k: Tensor, mask: Mask | None) -> Tensor:
    wide = k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    return attention_scores(q.double(), wide, mask, None, SCALE)


def threshold_of(scores: Tensor, top: int) -> Tensor:
    """The top-th of the groups' greatest scores: so many keys reach it, at least."""
    room = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % GROUPS), value=-torch.inf)
    return room.unflatten(-1, (-1, GROUPS)).amax(-2).sort(-1, descending=True).values[..., top - 1]


def survivors_of(scores: Tensor, threshold: Tensor) -> Survivors:
    """The keys that are seen and reach it, in no order, as far as there is room; what lies behind them is anything."""
    reach = ((scores >= threshold[..., None]) & (scores > -torch.inf)).flatten(0, 1)
    mixed = torch.randperm(reach.shape[-1], generator=torch.Generator().manual_seed(1))
    order = mixed[reach[..., mixed].int().sort(dim=-1, descending=True, stable=True).indices][..., :ROOM]
    keys = torch.full((*reach.shape[:2], ROOM), 2**31 - 1)
    keys[..., : order.shape[-1]] = order
    return Survivors(reach.sum(-1).int().to(DEVICE), keys.int().to(DEVICE))


def check(indices: Tensor, weights: Tensor, scores: Tensor, top: int) -> None:
    """The stronger first, of equal ones the earlier; then those that are not seen."""
    right = scores.sort(dim=-1, descending=True, stable=True).indices[..., :top]
    torch.testing.assert_close(indices.cpu(), right, rtol=0, atol=0)
    assert_close(weights, attention_weights(scores).gather(-1, right), "weights")


def check_rank(q: Tensor, k: Tensor, mask: Mask | None = None, top: int = FEW, *, scores: Tensor | None = None) -> None:
    """Where every list has room, in two groups of heads; nothing is there before that could pass for a result."""
    scores = scores_of(q, k, mask) if scores is None else scores
    top = min(top, k.shape[2])
    all_of_them = survivors_of(scores, threshold_of(scores, top))
    assert (all_of_them.counts <= ROOM).all()
    shape = (*q.shape[:3], top)
    indices, weights = torch.full(shape, -1, device=DEVICE), torch.full(shape, torch.nan, device=DEVICE)
    q, k, lse = q.to(DEVICE), k.to(DEVICE), scores.logsumexp(-1).float().to(DEVICE)
    heads = q.shape[0] * q.shape[1]
    for first, end in ((0, heads // 3), (heads // 3, heads)):
        if first < end:
            some = Survivors(*(x[first:end] for x in all_of_them))
            rank(Given.of(q, k, lse, SCALE, None), q, k, some, first, Kept(indices, weights, top))
    check(indices, weights, scores, top)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("E", [64, 80, 128])
def test_widths_and_dtypes(E: int, dtype: torch.dtype) -> None:
    check_rank(*even_pair(8, 50, E, dtype=dtype, H=1))


@pytest.mark.parametrize(("name", "top"), [("causal", 8), ("window", 8), ("padding", 3), ("apart", 1)])
def test_who_sees_few_keys(name: str, top: int) -> None:
    """They get the first that they do not see, with a weight of 0."""
    check_rank(*even_pair(21, 33, B=2, H=1), MASKS[name], top)


def test_who_sees_nothing() -> None:
    check_rank(*even_pair(20, 6, H=1), Mask.causal())


def test_grouped_heads_of_several_samples() -> None:
    check_rank(*even_pair(5, 40, B=2, H=6, G=2))


def test_positions_before_heads() -> None:
    q, k = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in even_pair(9, 40, H=4, G=2))
    check_rank(q, k)


@pytest.mark.parametrize("S", [16, 17, 31, 32])
def test_lists_that_are_half_full_and_full(S: int) -> None:
    """All keys are equal, so all pass: the earliest are the strongest."""
    q, k = even_pair(9, S, H=1)
    check_rank(q, k[:, :, :1].expand_as(k))


def test_zero_has_no_sign() -> None:
    """Scores that are too small for float32, of either sign: 0 and -0 are equal."""
    q, k = torch.zeros(1, 1, 9, 16), torch.zeros(1, 1, 20, 16)
    q[..., 0], k[..., 0] = 1e-22, torch.tensor([-1.4e-23, 1.4e-23]).repeat(10)
    check_rank(q, k, scores=torch.zeros(1, 1, 9, 20, dtype=torch.float64))


def test_long_lists_beside_short_ones() -> None:
    """Half of the queries see everything alike."""
    q, k = even_pair(16, 30, H=1)
    q[:, :, ::2] = 0
    check_rank(q, k)


def test_what_is_no_number_comes_last() -> None:
    q, k = (x.to(DEVICE) for x in even_pair(8, 12, H=1))
    k[:, :, 5] = torch.nan
    keys = torch.full((1, 8, ROOM), -1, dtype=torch.int32, device=DEVICE)
    keys[..., :4] = torch.tensor([7, 5, 11, 2])
    counts = torch.full((1, 8), 4, dtype=torch.int32, device=DEVICE)
    kept = Kept(torch.full((1, 1, 8, 6), -1, device=DEVICE), torch.full((1, 1, 8, 6), torch.nan, device=DEVICE), 6)
    rank(Given.of(q, k, torch.zeros(1, 1, 8, device=DEVICE), SCALE, None), q, k, Survivors(counts, keys), 0, kept)
    assert (kept.indices[..., 3:] == torch.tensor([5, 0, 1], device=DEVICE)).all()
    assert (kept.weights[..., :3] > 0).all()
    assert (kept.weights[..., 3:] == 0).all()


@settings(max_examples=10)
@given(
    T=st.integers(1, 20),
    S=st.integers(1, ROOM),
    top=st.integers(1, FEW),
    left=st.none() | st.integers(0, 20),
    right=st.none() | st.integers(0, 20),
    bits=st.sampled_from([0.25, 1.0, 4.0]),
)
def test_any_lists(T: int, S: int, top: int, left: int | None, right: int | None, bits: float) -> None:
    """bits: how different the scores are."""
    q, k = (x * bits for x in even_pair(T, S, H=1))
    check_rank(q.round(), k, Mask.window(left, right), top)


# --- in the place of the search ----------------------------------------------------------------------------------


@pytest.fixture
def quicker(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tensor, Sight]]:
    """In the place of the kernels for Hopper GPUs: lists for three heads at a time; which calls there were."""
    calls: list[tuple[Tensor, Sight]] = []
    fake = SimpleNamespace(fits=_fits, thresholds_of=_thresholds_of, survivors_of=_lister(calls))
    monkeypatch.setattr(hopper, "is_at_hand", lambda device: True)
    monkeypatch.setattr(hopper, "launching", fake, raising=False)
    monkeypatch.setitem(sys.modules, "regard.kernels.triton.hopper.launch", fake)
    return calls


def _fits(*tensors: Tensor, sight: Sight, scale: float, softcap: float | None, bins: None) -> bool:
    return sight.queries is None and softcap is None and scale == SCALE and bins is None


def _seen_by(q: Tensor, k: Tensor, sight: Sight) -> Tensor:
    return scores_of(q.cpu(), k.cpu(), None if sight.right is None else Mask.causal())


def _thresholds_of(q: Tensor, k: Tensor, sight: Sight, *, top: int) -> Tensor:
    return (threshold_of(_seen_by(q, k, sight), top) / SCALE).float().to(DEVICE)


def _lister(calls: list[tuple[Tensor, Sight]]) -> Callable[..., Iterator[tuple[int, Survivors]]]:
    def lists(q: Tensor, k: Tensor, threshold: Tensor, sight: Sight) -> Iterator[tuple[int, Survivors]]:
        calls.append((threshold, sight))
        found = survivors_of(_seen_by(q, k, sight), threshold.cpu() * SCALE)
        for first in range(0, len(found.counts), 3):
            yield first, Survivors(*(x[first : first + 3] for x in found))

    return lists


def crowd() -> list[Tensor]:
    """Some queries to which all keys are equal, and keys of which half are equal: far more than there is room for."""
    q, k = even_pair(24, 70, B=2, H=2, G=1)
    q[:, :, 5:12:3] = 0
    k[1, :, 10:60] = k[1, :, :1]
    return [q, k]


@pytest.mark.parametrize(("top", "mask"), [(8, None), (5, Mask.causal()), (1, None)], ids=["full", "causal", "one"])
def test_lists_that_overflow_are_searched(top: int, mask: Mask | None, quicker: list[Any]) -> None:
    q, k = crowd()
    scores = scores_of(q, k, mask)
    threshold = threshold_of(scores, top).float()
    counts = survivors_of(scores, threshold.double()).counts
    assert 0 < (counts > ROOM).sum() < counts.numel()
    found = _of(q, k, scores, threshold, mask, top=top)
    check(*found, scores, top)
    assert len(quicker) == 1


def test_only_what_overflowed_is_searched(quicker: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the ranking wrote stays: here it writes what nobody would find."""
    q, k = crowd()
    scores = scores_of(q, k, None)
    threshold = threshold_of(scores, 4).float()
    crowded = (survivors_of(scores, threshold.double()).counts > ROOM).unflatten(0, q.shape[:2])

    def mark(given: Given, q: Tensor, k: Tensor, survivors: Survivors, first: int, kept: Kept) -> None:
        kept.indices.flatten(0, 1)[first : first + len(survivors.counts)] = -7

    monkeypatch.setattr(top_keys, "rank", mark)
    indices, _ = _of(q, k, scores, threshold, None, top=4)
    assert ((indices == -7).all(-1) == ~crowded).all()
    assert ((indices != -7).all(-1) == crowded).all()


@pytest.mark.parametrize(
    ("mask", "options"),
    [
        (None, {"top": FEW + 1}),
        (None, {"softcap": 2.0}),
        (None, {"entropy": True}),
        (None, {"top": None, "entropy": True}),
        (Mask.segments(torch.arange(70) // 20), {}),
    ],
    ids=["more", "softcap", "entropy", "no top", "segments"],
)
def test_what_the_lists_are_not_for(mask: Mask | None, options: dict[str, Any], quicker: list[Any]) -> None:
    q, k = (x.to(DEVICE) for x in even_pair(16, 70))
    bound = None if mask is None else mask.bind(q.shape[:2], 16, 70, q)
    lse = torch.zeros(1, 2, 16, device=DEVICE)
    plain = {"mask": bound, "scale": SCALE, "top": 4} | options
    found = of_queries(q, k, lse, **{"threshold": lse} | plain)
    right = of_queries(q, k, lse, **plain | {"threshold": None})
    assert not quicker
    assert (found.top is None) == (right.top is None)
    if found.top is not None and right.top is not None:
        assert torch.equal(found.top.indices, right.top.indices)


def test_thresholds_are_made_where_no_forward_left_any(quicker: list[Any]) -> None:
    q, k = crowd()
    scores = scores_of(q, k, Mask.causal())
    check(*_of(q, k, scores, None, Mask.causal(), top=5), scores, 5)
    assert len(quicker) == 1


def _of(
    q: Tensor, k: Tensor, scores: Tensor, threshold: Tensor | None, mask: Mask | None, top: int
) -> tuple[Tensor, Tensor]:
    q, k, lse = q.to(DEVICE), k.to(DEVICE), scores.logsumexp(-1).float().to(DEVICE)
    bound = None if mask is None else mask.bind(q.shape[:2], q.shape[2], k.shape[2], q)
    given = None if threshold is None else threshold.to(DEVICE) / SCALE
    found = of_queries(q, k, lse, mask=bound, scale=SCALE, top=top, threshold=given)
    assert found.top is not None
    return found.top.indices, found.top.weights
