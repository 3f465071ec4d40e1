"""Progress of a run: saved and restored; non-finite weights are never saved."""

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from tiny_runs import Tiny
from tolerances import assert_same_bits
from torch import nn

from regard.errors import FileError, RunError
from regard.training.checkpoint_store import Snapshot
from regard.training.plan import Plan
from regard.training.progress import Progress, restore, snapshot
from regard.training.step import adamw, optimizer_state

PLAN = Plan(steps=10, lr=0.1)
PROGRESS = Progress(data="abc", step=7, cursor=21, best=1.25, best_step=6, waited=1, skipped=2, bad_in_a_row=1)


def trained() -> tuple[Tiny, torch.optim.AdamW]:
    model = Tiny(seed=3)
    optimizer = adamw(model, PLAN)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    return model, optimizer


def test_snapshot_and_restore() -> None:
    model, optimizer = trained()
    kept = snapshot(PROGRESS, model, optimizer)
    assert kept.step == 7
    other = Tiny(seed=4)
    state = adamw(other, PLAN)
    assert restore(kept, other, state, Progress(data="abc")) == PROGRESS
    for name, weight in model.state_dict().items():
        assert_same_bits(other.state_dict()[name], weight)
    expected = optimizer_state(optimizer, model)
    found = optimizer_state(state, other)
    assert found.keys() == expected.keys()
    for place, value in expected.items():
        assert_same_bits(found[place], value)


def test_best_weights_are_saved_without_optimizer_state() -> None:
    assert snapshot(PROGRESS, trained()[0], None).optimizer == {}


def test_a_new_run_has_no_best_yet() -> None:
    model, optimizer = trained()
    fresh = Progress(data="abc")
    assert restore(snapshot(fresh, model, optimizer), model, optimizer, fresh).best is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_weights_raise(value: float) -> None:
    model, optimizer = trained()
    with torch.no_grad():
        model.output.weight[2, 1] = value
    with pytest.raises(RunError, match=r"output\.weight is not finite after step 7") as caught:
        snapshot(PROGRESS, model, optimizer)
    assert caught.value.exit_code == 1


def test_integer_and_boolean_buffers_are_finite() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("count", torch.tensor([1, 2]))
    model.register_buffer("mask", torch.tensor([True, False]))
    assert snapshot(PROGRESS, model, None).model.keys() == {"weight", "bias", "count", "mask"}


def test_other_data_raise() -> None:
    model, optimizer = trained()
    kept = snapshot(PROGRESS, model, optimizer)
    with pytest.raises(FileError, match="belongs to other training data"):
        restore(kept, model, optimizer, Progress(data="abd"))


class Other(Tiny):
    """A model with one more layer."""

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("other", "name"),
    [(Tiny(d_model=5), "embedding.weight"), (Other(), "extra.bias"), (nn.Linear(2, 2), "bias")],
)
def test_another_model_raises_and_is_unchanged(other: nn.Module, name: str) -> None:
    model, optimizer = trained()
    before = {key: value.clone() for key, value in other.state_dict().items()}
    with pytest.raises(FileError, match=f"another model: {name} differs"):
        restore(snapshot(PROGRESS, model, optimizer), other, adamw(other, PLAN), Progress(data="abc"))
    for key, value in other.state_dict().items():
        assert_same_bits(value, before[key])


@pytest.mark.parametrize(
    "change",
    [{"step": "7"}, {"best": "low"}, {"data": 3}, {"strange": 1}, {"cursor": None}],
    ids=lambda change: next(iter(change)),
)
def test_invalid_state_raises(change: dict[str, Any]) -> None:
    model, optimizer = trained()
    kept = Snapshot(7, model.state_dict(), {}, {"progress": asdict(PROGRESS) | change})
    with pytest.raises(FileError, match=r"state\.json"):
        restore(kept, model, optimizer, Progress(data="abc"))


@pytest.mark.parametrize("state", [{}, {"progress": None}, {"progress": []}, {"progress": {"step": 7}}])
def test_state_without_progress_raises(state: dict[str, Any]) -> None:
    model, optimizer = trained()
    with pytest.raises(FileError, match=r"state\.json"):
        restore(Snapshot(7, model.state_dict(), {}, state), model, optimizer, Progress(data="abc"))


def test_reset_best() -> None:
    progress = replace(PROGRESS)
    progress.reset_best()
    assert (progress.best, progress.best_step, progress.waited, progress.step) == (None, 0, 0, 7)
