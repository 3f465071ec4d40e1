"""The budget: what fits is kept, what does not fit is reported, and a budget that is too small raises."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from narrowing import present
from torch import Tensor, nn

from regard import See
from regard.attention_call import WeightsFromQK
from regard.capture.budget import Budget, in_bytes
from regard.capture.operators import CapturedCall, CapturedWeights
from regard.capture.recording import record_of_call
from regard.capture.watching import watch
from regard.errors import ArgumentError, TooLargeError
from regard.memory import available_bytes
from regard.records import Record
from regard.statistics_table import STATISTICS, bytes_of

B, H, T, S, E = SIZES = (2, 3, 40, 50, 8)
EVERYTHING = See(map=32, max_score=True, entropy=True, received=True, top=4, distance=True, qk=True)
OUTPUTS = See(map=32, outputs=True, qk=True)


class Layer(nn.Module):
    """Any module."""


def captured() -> CapturedCall:
    q, k = torch.randn(B, H, T, E), torch.randn(B, H, S, E)
    return CapturedCall(q, k, k, scale=1.0)


def fitted(limit: Budget, what: CapturedCall | CapturedWeights | None = None) -> See:
    return limit.fit(what or captured(), "h.0.attn", Layer(), (B, H, T, S))


def held(record: Record) -> int:
    arrays = [x for one in STATISTICS for x in one.arrays(getattr(record, one.name)).values()]
    arrays += [record.exact.q, record.exact.k] if isinstance(record.exact, WeightsFromQK) else []
    return sum(x.numel() * x.element_size() for x in arrays if isinstance(x, Tensor))


@pytest.mark.parametrize(
    ("given", "count"),
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
def test_budget_strings(given: Any, count: int) -> None:
    assert in_bytes(given) == count


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "", "much", "-2 GB", "2 G", "0 GB", [1]], ids=repr)
def test_invalid_budgets_raise_before_the_model_runs(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="2 GB") as raised, watch(nn.MultiheadAttention(8, 2), budget=wrong):
        raise AssertionError("the block was entered")
    assert "budget" in raised.value.text("zh")


def test_the_default_is_a_share_of_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < in_bytes(None) <= (available_bytes() or 2**63)
    monkeypatch.setattr("regard.capture.budget.available_bytes", lambda: None)
    assert in_bytes(None) > 2**40


def test_the_default_uses_the_memory_of_the_records_device(monkeypatch: pytest.MonkeyPatch) -> None:
    what = captured()
    weights = CapturedWeights(torch.rand(B, H, T, S).softmax(-1), torch.zeros(B, H, T))
    monkeypatch.setattr("regard.capture.budget.UNCHECKED_BYTES", 0)
    monkeypatch.setattr("regard.capture.budget.available_bytes", lambda: 1 / 0)
    for one, place in ((what, what.q), (weights, weights.weights)):
        free = 4 * (bytes_of(EVERYTHING, (B, H, T, S)) + 10)  # and no memory for q and k
        monkeypatch.setattr("regard.capture.budget.free_gpu_bytes", {place: free}.get)
        limit = Budget(None, EVERYTHING)
        assert fitted(limit, one) == replace(EVERYTHING, qk=False)
        assert limit.warning() is not None


@pytest.mark.parametrize("see", [EVERYTHING, replace(EVERYTHING, map=None), See(), See(map=8, top=100)], ids=str)
def test_the_estimate_equals_the_bytes_held(see: See) -> None:
    what = captured()
    exact = what.q.numel() * 4 + what.k.numel() * 4 if see.qk else 0
    assert bytes_of(see, (B, H, T, S)) + exact == held(record_of_call(what, Layer(), see))


def test_everything_that_fits_is_kept() -> None:
    limit = Budget("1 GB", EVERYTHING)
    assert fitted(limit) == EVERYTHING
    assert limit.warning() is None


def test_smaller_budgets_keep_less_and_warn() -> None:
    budget = held(record_of_call(captured(), Layer(), EVERYTHING))
    kept, texts = [], []
    while True:
        limit = Budget(budget, EVERYTHING)
        try:
            kept.append(fitted(limit))
        except TooLargeError:
            break
        texts.append(limit.warning())
        assert bytes_of(kept[-1], (B, H, T, S)) <= budget
        budget -= 500
    order = list(dict.fromkeys((see.qk, see.map, see.top) for see in kept))
    assert order == [(True, 32, 4), (False, 32, 4), (False, 16, 4), (False, 16, None), (False, None, None)]
    assert texts[0] is None
    assert "weights()" in str(texts[-1])
    assert any("coarser than 32 bins: 1, down to 16" in str(one) for one in texts)
    assert "without a map: 1" in str(texts[-1])
    assert "coarser" not in str(texts[-1])
    assert all(see.entropy and see.received and see.lse for see in kept)


def test_outputs_are_counted_and_left_out_after_q_and_k() -> None:
    statistics, outputs = bytes_of(OUTPUTS, (B, H, T, S)), B * H * T * E * 4
    assert bytes_of(OUTPUTS, (B, H, T, S), E) == statistics + outputs
    assert fitted(Budget(statistics + outputs, OUTPUTS)) == replace(OUTPUTS, qk=False)
    limit = Budget(statistics + outputs - 1, OUTPUTS)
    assert fitted(limit) == replace(OUTPUTS, qk=False, outputs=False)
    assert "without the outputs of heads: 1" in str(limit.warning())


def test_every_layer_gets_the_same_share() -> None:
    one = held(record_of_call(captured(), Layer(), See(qk=True)))
    limit = Budget(3 * one, See(qk=True), lambda: Counter({Layer: 4}))
    assert [fitted(limit).qk for _ in range(4)] == [False] * 4
    limit = Budget(4 * one, See(qk=True), lambda: Counter({Layer: 4}))
    assert [fitted(limit).qk for _ in range(4)] == [True] * 4


def test_computed_weights_are_kept_only_within_the_budget() -> None:
    weights = CapturedWeights(torch.rand(B, H, T, S).softmax(-1), torch.zeros(B, H, T))
    see = See(map=8, qk=True)
    statistics = bytes_of(see, (B, H, T, S))
    assert fitted(Budget(statistics + B * H * T * S * 4, see), weights).qk
    assert not fitted(Budget(statistics + B * H * T * S * 4 - 1, see), weights).qk


def test_watch_warns_about_what_it_left_out() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, 64, 8)
    warning = pytest.warns(UserWarning, match="6.0 KiB did not hold everything")
    with torch.no_grad(), warning, watch(layer, see=See(map=32, qk=True), budget=6 * 1024) as trace:
        layer(x, x, x, need_weights=False)
    assert present(trace[0].map).shape[-1] == 16
    assert trace[0].exact is None


@pytest.mark.parametrize(("budget", "formatted"), [("6 kB", "6.0 kB"), ("0.006 MB", "6.0 kB"), ("6 KiB", "6.0 KiB")])
def test_messages_use_the_units_of_the_budget(budget: str, formatted: str) -> None:
    limit = Budget(budget, EVERYTHING)
    fitted(limit)
    text = limit.warning()
    assert text is not None
    assert f"a budget of {formatted}" in text
    assert ("iB" in text) == ("i" in budget)


def test_a_budget_that_is_too_small_raises() -> None:
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, 64, 8)
    with torch.no_grad(), pytest.raises(TooLargeError, match="too small for attention:"), watch(layer, budget=100):
        layer(x, x, x, need_weights=False)
