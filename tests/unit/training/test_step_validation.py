"""The validation loss: a mean over targets, not over batches, without side effects."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import ALONE, Numbers, Tiny, predict
from torch import Tensor, nn

from regard.training.batches import IGNORED, Batch
from regard.training.processes import Ranks
from regard.training.step import validation_loss


def by_hand(model: nn.Module, data: Numbers) -> float:
    """The mean of every target's loss, in float64."""
    losses: list[float] = []
    for index in range(data.batches_per_epoch):
        batch = data.batch(0, index)
        log_p = predict(model, **batch.inputs).double().log_softmax(-1)
        for row, targets in zip(log_p, batch.targets.tolist(), strict=True):
            losses += [-at[target].item() for at, target in zip(row, targets, strict=True) if target != IGNORED]
    return sum(losses) / len(losses)


@given(st.integers(1, 6), st.integers(0, 9))
def test_mean_over_all_targets_without_dropout(batches: int, seed: int) -> None:
    model, data = Tiny(dropout=0.5, seed=seed), Numbers(batches=batches)
    found = validation_loss(model, predict, data, ALONE, nullcontext)
    assert not model.training
    assert found == pytest.approx(by_hand(model, data), rel=1e-6)
    assert data.requested[:batches] == [(0, index) for index in range(batches)]


def test_validation_changes_no_weight_gradient_or_random_state() -> None:
    model = Tiny()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    chance = torch.get_rng_state()
    validation_loss(model, predict, Numbers(), ALONE, nullcontext)
    assert torch.equal(torch.get_rng_state(), chance)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())


class Summing(Ranks):
    """A process that does not add the other processes' sums."""

    def summed(self, values: Tensor) -> Tensor:
        return values


@pytest.mark.parametrize("world", [2, 3, 5])
def test_sums_of_all_processes_add_up(world: int) -> None:
    model, data = Tiny(), Numbers()
    shares = [
        validation_loss(model, predict, data, Summing(rank, world, torch.device("cpu")), nullcontext)
        for rank in range(world)
    ]
    assert sum(shares) == pytest.approx(validation_loss(model, predict, data, ALONE, nullcontext), rel=1e-6)


class Empty(Numbers):
    """Data without targets."""

    def batch(self, epoch: int, index: int) -> Batch:
        batch = super().batch(epoch, index)
        return batch._replace(targets=torch.full_like(batch.targets, IGNORED))


def test_no_targets_give_zero_loss() -> None:
    assert validation_loss(Tiny(), predict, Empty(), ALONE, nullcontext) == 0.0


def test_autocast_changes_the_loss_a_little() -> None:
    model = Tiny()
    exact = validation_loss(model, predict, Numbers(), ALONE, nullcontext)
    halved = validation_loss(model, predict, Numbers(), ALONE, lambda: torch.autocast("cpu", torch.bfloat16))
    assert halved != exact
    assert halved == pytest.approx(exact, rel=0.02)
