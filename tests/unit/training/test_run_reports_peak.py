"""Counted operations compared with a hand calculation, and the share of the peak of all devices."""

from contextlib import nullcontext

import pytest
import torch
from tiny_runs import ALONE, VOCAB, Numbers, Tiny, predict
from torch import nn

from regard.training import run_reports
from regard.training.processes import Ranks
from regard.training.run_reports import counted_operations, measured_peak, share_per_rate
from regard.training.step import Objective

CPU = torch.device("cpu")


def test_matrix_product_counts_two_operations_per_entry() -> None:
    x, weight = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert counted_operations(lambda: (x @ weight).sum()) == 3 * (2 * 3 * 5 * 7)


def test_peak_is_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reports, "SECONDS", 0.0)  # measured at least once
    assert 1e6 < measured_peak(CPU, torch.float32) < 1e15


@pytest.mark.parametrize("world", [1, 4])
def test_share_is_operations_per_token_over_the_total_peak(monkeypatch: pytest.MonkeyPatch, world: int) -> None:
    monkeypatch.setattr(run_reports, "measured_peak", lambda device, dtype: 1e9)
    data = Numbers(rows=(2,))
    batch = data.batch(0, 0)
    found = share_per_rate(Objective(Tiny(), predict), data, Ranks(0, world, CPU), nullcontext())
    operations = 3 * 2 * batch.targets.numel() * 6 * VOCAB  # only the output layer multiplies
    assert found == pytest.approx(operations / batch.n_tokens / (world * 1e9))


def test_few_rows_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reports, "measured_peak", lambda device, dtype: 1e9)
    seen: list[int] = []

    def forward(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        seen.append(len(ids))
        return predict(model, ids)

    share_per_rate(Objective(Tiny(), forward), Numbers(rows=(64,)), ALONE, nullcontext())
    assert seen == [4]


def test_autocast_uses_the_peak_of_its_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    dtypes: list[torch.dtype] = []

    def peak(device: torch.device, dtype: torch.dtype) -> float:
        dtypes.append(dtype)
        return 1e9

    monkeypatch.setattr(run_reports, "measured_peak", peak)
    for context in (nullcontext(), torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False)):
        share_per_rate(Objective(Tiny(), predict), Numbers(), ALONE, context)
    assert dtypes == [torch.float32, torch.bfloat16, torch.float32]


class Counting(Tiny):
    """Updates a statistic in training mode, as BatchNorm does."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(VOCAB)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.norm(super().forward(ids).transpose(1, 2)).transpose(1, 2)


def test_counting_changes_no_gradient_statistic_or_random_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reports, "measured_peak", lambda device, dtype: 1e9)
    model = Counting()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    chance = torch.get_rng_state()
    share_per_rate(Objective(model, predict), Numbers(), ALONE, nullcontext())
    assert torch.equal(torch.get_rng_state(), chance)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())


def test_no_share_without_counted_operations() -> None:
    class Table(nn.Module):
        """Looks up logits, without a matrix product."""

        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Embedding(VOCAB, VOCAB)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.logits(ids)

    assert share_per_rate(Objective(Table(), predict), Numbers(), ALONE, nullcontext()) is None
