"""Non-finite losses, gradients and weights: skipped, counted, reported, and never saved."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import VOCAB, Poisoned, Tiny, assert_same_tensors, at, metrics, nan_loss, newest, predict, train
from torch import Tensor, nn

from regard.errors import RunError
from regard.training import loop
from regard.training.checkpoint_store import CheckpointStore


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncing the disk and measuring the device's peak."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(loop, "share_per_rate", lambda *about: None)


def infinite_logits(model: nn.Module, ids: Tensor) -> Tensor:
    return predict(model, ids) + (torch.inf if bool((ids == VOCAB - 1).any()) else 0.0)


def infinite_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Only id 0 is possible: any other target has an infinite loss, but all gradients are finite."""
    logits = predict(model, ids)
    return logits.index_fill(-1, torch.arange(1, VOCAB), -torch.inf) if bool((ids == VOCAB - 1).any()) else logits


def nan_gradient(model: nn.Module, ids: Tensor) -> Tensor:
    """A finite loss with an infinite gradient: that of √x at 0."""
    logits = predict(model, ids)
    return logits + (0 * logits).abs().sqrt() if bool((ids == VOCAB - 1).any()) else logits


FORWARDS = (nan_loss, infinite_loss, infinite_logits, nan_gradient)


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_non_finite_step_is_skipped_and_reported(tmp_path: Path, forward: Any, accumulate: int) -> None:
    data = Poisoned(2, 9, batches=20)
    options: dict[str, Any] = {"steps": 8, "save_every": 1, "keep": 9, "accumulate": accumulate}
    found = train(tmp_path, data=data, forward=forward, **options)
    bad = sorted({index // accumulate + 1 for index in (2, 9) if index // accumulate < 8})
    lines = metrics(tmp_path)
    assert [line["step"] for line in lines] == list(range(1, 9))
    assert [line["step"] for line in lines if line.get("skipped")] == bad
    assert all((line["loss"] is None) == (line["norm"] is None) == (line["step"] in bad) for line in lines)
    assert (found.progress.skipped, found.progress.bad_in_a_row) == (len(bad), 0)
    checkpoints = CheckpointStore(tmp_path / "checkpoints", keep=9)
    for step in bad:
        before, after = checkpoints.load(step - 1), checkpoints.load(step)
        assert_same_tensors(after.model, before.model)
        assert_same_tensors(after.optimizer, before.optimizer)
        assert after.state["progress"]["bad_in_a_row"] == 1
        written = json.loads((tmp_path / "bad" / f"step-{step:08d}.json").read_text())
        batches = [data.batch(0, (step - 1) * accumulate + k) for k in range(accumulate)]
        assert written == {"step": step, "examples": [example for batch in batches for example in batch.examples]}
    assert sorted(path.name for path in (tmp_path / "bad").iterdir()) == [f"step-{step:08d}.json" for step in bad]
    assert all(weight.isfinite().all() for weight in newest(tmp_path).model.values())


def test_first_step_may_be_skipped(tmp_path: Path) -> None:
    model = Tiny()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    train(tmp_path, data=Poisoned(0), forward=nan_loss, model=model, steps=1)
    assert_same_tensors(newest(tmp_path).model, before)


def test_too_many_in_a_row_end_the_run_with_a_good_checkpoint(tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": Poisoned(*range(7, 40), batches=40), "forward": nan_loss, "bad_steps": 4}
    with pytest.raises(RunError) as caught:
        train(tmp_path, save_every=3, **options)
    assert caught.value.key == "run-not-finite"
    assert "4 steps in a row, up to step 11" in str(caught.value)
    assert "checkpoint of step 9 is good" in str(caught.value)
    assert [line["step"] for line in metrics(tmp_path)] == list(range(1, 12))
    assert newest(tmp_path).step == 9
    good = train(tmp_path / "good", data=options["data"], forward=nan_loss, steps=7)
    assert_same_tensors(newest(tmp_path).model, good.weights)
    with pytest.raises(RunError, match="up to step 11"):  # again, at the same step
        train(tmp_path, save_every=3, **options)
    assert [line["step"] for line in metrics(tmp_path)] == list(range(1, 12))


def test_good_step_resets_the_count(tmp_path: Path) -> None:
    found = train(tmp_path, data=Poisoned(0, 1, 3), forward=nan_loss, bad_steps=3)
    assert (found.progress.skipped, found.progress.bad_in_a_row) == (8, 2)
    with pytest.raises(RunError, match=r"2 steps in a row, up to step 2, .* no checkpoint has been saved yet"):
        train(tmp_path / "fewer", data=Poisoned(0, 1, 3), forward=nan_loss, bad_steps=2)


def test_non_finite_weights_are_never_saved(tmp_path: Path) -> None:
    model = Tiny()

    def corrupt() -> None:
        with torch.no_grad():
            model.embedding.weight[VOCAB - 1] = torch.inf  # a row that no loss uses

    with pytest.raises(RunError, match=r"embedding\.weight is not finite after step 10"):
        train(tmp_path, at(8, corrupt), model=model)
    assert CheckpointStore(tmp_path / "checkpoints").steps() == [5]
    assert all(weight.isfinite().all() for weight in newest(tmp_path).model.values())


def test_non_finite_validation_ends_the_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"valid": Poisoned(0), "forward": nan_loss, "valid_every": 8, "final": "best"}
    with pytest.raises(RunError, match="validation loss of step 8 is not finite"):
        train(tmp_path, **options)
    assert newest(tmp_path).step == 5
    assert [line["step"] for line in metrics(tmp_path)] == list(range(1, 9))
    assert CheckpointStore(tmp_path / "best").steps() == []
