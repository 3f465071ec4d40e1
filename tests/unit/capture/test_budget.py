"""The budget: what fits is kept, what does not is said, and a budget that holds nothing is refused."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import See
from regard.capture.budget import Keeping, bytes_of, in_bytes
from regard.capture.captured import Caught, CaughtWeights
from regard.capture.recording import recorded
from regard.capture.watching import watch
from regard.errors import ArgumentError, TooLargeError
from regard.memory import available_bytes
from regard.records import Record

B, H, T, S, E = SIZES = (2, 3, 40, 50, 8)
EVERYTHING = See(map=32, entropy=True, received=True, top=4, distance=True, qk=True)


class Layer(nn.Module):
    """Any module."""


def caught() -> Caught:
    q, k = torch.randn(B, H, T, E), torch.randn(B, H, S, E)
    return Caught(q, k, k, scale=1.0)


def asked(keeping: Keeping, what: Caught | CaughtWeights | None = None) -> See:
    return keeping.see(what or caught(), "h.0.attn", Layer(), (B, H, T, S))


def held(record: Record) -> int:
    arrays: list[Any] = [record.map, record.lse, record.entropy, record.received, record.sink, record.distance]
    arrays += [*(record.top or ()), record.kept.get("q"), record.kept.get("k")]
    return sum(x.numel() * x.element_size() for x in arrays if isinstance(x, Tensor))


@pytest.mark.parametrize(
    ("spelt", "count"),
    [
        (1, 1),
        (4096, 4096),
        ("2 GB", 2 * 10**9),
        ("2GiB", 2**31),
        ("1.5 mb", 1_500_000),
        ("300 B", 300),
        ("1 TB", 10**12),
    ],
)
def test_budgets_as_people_write_them(spelt: Any, count: int) -> None:
    assert in_bytes(spelt) == count


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "", "much", "-2 GB", "2 G", "0 GB", [1]], ids=repr)
def test_other_budgets_are_refused_before_anything_runs(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="2 GB") as raised, watch(nn.MultiheadAttention(8, 2), budget=wrong):
        raise AssertionError("the block was entered")
    assert "budget" in raised.value.text("zh")


def test_without_a_word_it_is_a_share_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < in_bytes(None) <= (available_bytes() or 2**63)
    monkeypatch.setattr("regard.capture.budget.available_bytes", lambda: None)
    assert in_bytes(None) > 2**40


def test_without_a_word_it_is_a_share_of_the_gpu_that_records_lie_on(monkeypatch: pytest.MonkeyPatch) -> None:
    what = caught()
    weights = CaughtWeights(torch.rand(B, H, T, S).softmax(-1), torch.zeros(B, H, T))
    monkeypatch.setattr("regard.capture.budget.available_bytes", lambda: 1 / 0)
    for one, place in ((what, what.q), (weights, weights.weights)):
        free = 4 * (bytes_of(EVERYTHING, (B, H, T, S)) + 10)  # and nothing for q and k
        monkeypatch.setattr("regard.capture.budget.free_beside", {place: free}.get)
        keeping = Keeping(None, EVERYTHING)
        assert asked(keeping, one) == replace(EVERYTHING, qk=False)
        assert keeping.left_out() is not None


@pytest.mark.parametrize("see", [EVERYTHING, replace(EVERYTHING, map=None), See(), See(map=8, top=100)], ids=str)
def test_the_estimate_is_what_it_takes(see: See) -> None:
    what = caught()
    exact = what.q.numel() * 4 + what.k.numel() * 4 if see.qk else 0
    assert bytes_of(see, (B, H, T, S)) + exact == held(recorded(what, Layer(), see))


def test_what_fits_is_kept() -> None:
    keeping = Keeping("1 GB", EVERYTHING)
    assert asked(keeping) == EVERYTHING
    assert keeping.left_out() is None


def test_less_and_less_is_kept_and_said() -> None:
    budget = held(recorded(caught(), Layer(), EVERYTHING))
    seen, said = [], []
    while True:
        keeping = Keeping(budget, EVERYTHING)
        try:
            seen.append(asked(keeping))
        except TooLargeError:
            break
        said.append(keeping.left_out())
        assert bytes_of(seen[-1], (B, H, T, S)) <= budget
        budget -= 500
    order = list(dict.fromkeys((see.qk, see.map, see.top) for see in seen))
    assert order == [(True, 32, 4), (False, 32, 4), (False, 16, 4), (False, 16, None), (False, None, None)]
    assert said[0] is None
    assert "weights()" in str(said[-1])
    assert any("coarser than 32 bins: 1, down to 16" in str(one) for one in said)
    assert "without a map: 1" in str(said[-1])
    assert "coarser" not in str(said[-1])
    assert all(see.entropy and see.received and see.lse for see in seen)


def test_every_layer_gets_the_same_share() -> None:
    one = held(recorded(caught(), Layer(), See(qk=True)))
    keeping = Keeping(3 * one, See(qk=True), [Layer() for _ in range(4)])
    assert [asked(keeping).qk for _ in range(4)] == [False] * 4
    keeping = Keeping(4 * one, See(qk=True), [Layer() for _ in range(4)])
    assert [asked(keeping).qk for _ in range(4)] == [True] * 4


def test_weights_of_a_model_s_own_are_kept_within_the_budget_only() -> None:
    weights = CaughtWeights(torch.rand(B, H, T, S).softmax(-1), torch.zeros(B, H, T))
    see = See(map=8, qk=True)
    statistics = bytes_of(see, (B, H, T, S))
    assert asked(Keeping(statistics + B * H * T * S * 4, see), weights).qk
    assert not asked(Keeping(statistics + B * H * T * S * 4 - 1, see), weights).qk


def test_a_watch_says_what_it_left_out() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, 64, 8)
    said = pytest.warns(UserWarning, match="6.0 KiB did not hold everything")
    with torch.no_grad(), said, watch(layer, see=See(map=32, qk=True), budget=6 * 1024) as trace:
        layer(x, x, x, need_weights=False)
    assert trace[0].map.shape[-1] == 16
    assert trace[0].rectangle is None


@pytest.mark.parametrize(("budget", "said"), [("6 kB", "6.0 kB"), ("0.006 MB", "6.0 kB"), ("6 KiB", "6.0 KiB")])
def test_a_budget_is_repeated_in_its_own_units(budget: str, said: str) -> None:
    keeping = Keeping(budget, EVERYTHING)
    asked(keeping)
    text = keeping.left_out()
    assert text is not None
    assert f"a budget of {said}" in text
    assert ("iB" in text) == ("i" in budget)


def test_a_budget_that_holds_nothing_is_refused() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, 64, 8)
    with torch.no_grad(), pytest.raises(TooLargeError, match="too small for attention:"), watch(layer, budget=100):
        layer(x, x, x, need_weights=False)
