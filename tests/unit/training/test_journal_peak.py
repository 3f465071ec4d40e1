"""Operations counted against what one can count by hand, and a share that is one of all devices."""

from contextlib import nullcontext

import pytest
import torch
from tiny_runs import ALONE, VOCAB, Numbers, Tiny, predict
from torch import nn

from regard.training import journal
from regard.training.journal import counted_operations, measured_peak, share_per_rate
from regard.training.ranks import Ranks
from regard.training.step import Objective

CPU = torch.device("cpu")


def test_a_product_counts_two_operations_an_entry_and_backward_twice_as_many() -> None:
    x, weight = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert counted_operations(lambda: (x @ weight).sum()) == 3 * (2 * 3 * 5 * 7)


def test_the_peak_is_positive_and_quickly_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "SECONDS", 0.0)  # even then it is measured once
    assert 1e6 < measured_peak(CPU, torch.float32) < 1e15


@pytest.mark.parametrize("world", [1, 4])
def test_the_share_is_operations_per_token_over_the_peak_of_all(monkeypatch: pytest.MonkeyPatch, world: int) -> None:
    monkeypatch.setattr(journal, "measured_peak", lambda device, dtype: 1e9)
    data = Numbers(rows=(2,))
    batch = data.batch(0, 0)
    found = share_per_rate(Objective(Tiny(), predict), data, Ranks(0, world, CPU), nullcontext())
    operations = 3 * 2 * batch.targets.numel() * 6 * VOCAB  # the output layer alone multiplies
    assert found == pytest.approx(operations / batch.n_tokens / (world * 1e9))


def test_a_few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "measured_peak", lambda device, dtype: 1e9)
    seen: list[int] = []

    def forward(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        seen.append(len(ids))
        return predict(model, ids)

    share_per_rate(Objective(Tiny(), forward), Numbers(rows=(64,)), ALONE, nullcontext())
    assert seen == [4]


def test_autocast_is_measured_against_the_peak_of_its_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.dtype] = []
    monkeypatch.setattr(journal, "measured_peak", lambda device, dtype: asked.append(dtype) or 1e9)
    for context in (nullcontext(), torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False)):
        share_per_rate(Objective(Tiny(), predict), Numbers(), ALONE, context)
    assert asked == [torch.float32, torch.bfloat16, torch.float32]


class Counting(Tiny):
    """Keeps a statistic while it trains, as BatchNorm does."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(VOCAB)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.norm(super().forward(ids).transpose(1, 2)).transpose(1, 2)


def test_counting_leaves_gradients_statistics_and_chance_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "measured_peak", lambda device, dtype: 1e9)
    model = Counting()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    chance = torch.get_rng_state()
    share_per_rate(Objective(model, predict), Numbers(), ALONE, nullcontext())
    assert torch.equal(torch.get_rng_state(), chance)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())


def test_where_nothing_can_be_counted_there_is_no_share() -> None:
    class Table(nn.Module):
        """Looks logits up and multiplies nothing."""

        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Embedding(VOCAB, VOCAB)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.logits(ids)

    assert share_per_rate(Objective(Table(), predict), Numbers(), ALONE, nullcontext()) is None
