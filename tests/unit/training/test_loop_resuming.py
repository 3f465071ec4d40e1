"""A run that is stopped or killed at any step and resumed equals an uninterrupted run bit for bit."""

import os
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import (
    Numbers,
    Poisoned,
    PowerCutError,
    Tiny,
    assert_same_course,
    assert_same_tensors,
    cut_at,
    metrics,
    nan_loss,
    newest,
    predict,
    stop_at,
    train,
)
from torch import Tensor, nn

from regard.errors import FileError
from regard.training import loop
from regard.training.checkpoint_store import CheckpointStore
from regard.training.loop import Callback, Outcome
from regard.training.run_reports import Event, Started, Stepped

EVERYTHING: dict[str, Any] = {"valid_every": 3, "accumulate": 2, "average": 2, "smoothing": 0.1, "weight_decay": 0.1}
EVERYTHING |= {"schedule": "inverse-sqrt", "warmup": 4, "clip": 0.5}
BEST: dict[str, Any] = {"valid_every": 1, "final": "best", "lr": 0.6}
OPTIONS = {"everything": EVERYTHING, "best": BEST}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncing the disk and measuring the device's peak."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(loop, "share_per_rate", lambda *about: None)


def film() -> tuple[list[int], Callback]:
    calls: list[int] = []
    return calls, Callback(4, calls.append)


@pytest.fixture(scope="module", params=sorted(OPTIONS))
def uninterrupted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Outcome, Any]:
    """An uninterrupted run of 12 steps, and its options."""
    options = OPTIONS[request.param] | {"valid": Numbers(batches=2), "data": Poisoned(3), "forward": nan_loss}
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, train(folder, **options), options


@pytest.mark.parametrize("step", range(1, 13))
def test_stopped_run_continues_unchanged(tmp_path: Path, uninterrupted: tuple[Path, Outcome, Any], step: int) -> None:
    folder, expected, options = uninterrupted
    calls, callback = film()
    first = train(tmp_path, stop_at(step), callbacks=[callback], **options)
    assert (first.reason, first.progress.step, first.weights) == ("signal", step, None)
    assert newest(tmp_path).step == step
    assert [line["step"] for line in metrics(tmp_path)] == list(range(1, step + 1))
    events: list[Event] = []
    found = train(tmp_path, events.append, callbacks=[callback], **options)
    assert_same_course(tmp_path, found, folder, expected)
    assert isinstance(events[0], Started)
    assert (events[0].step, events[0].resumed_from, events[0].skipped) == (step, step, ())
    assert [event.step for event in events if isinstance(event, Stepped)] == list(range(step + 1, 13))
    assert sorted(set(calls)) == [0, 4, 8, 12]


@pytest.mark.parametrize("step", range(1, 13))
def test_killed_run_loses_at_most_one_interval(
    tmp_path: Path, uninterrupted: tuple[Path, Outcome, Any], step: int
) -> None:
    folder, expected, options = uninterrupted
    with pytest.raises(PowerCutError):
        train(tmp_path, cut_at(step), **options)
    events: list[Event] = []
    found = train(tmp_path, events.append, **options)
    assert isinstance(events[0], Started)
    assert events[0].step == max(0, step - 2) // 5 * 5  # the step before is finished, but not yet saved
    assert_same_course(tmp_path, found, folder, expected)


def test_run_stopped_at_every_step(tmp_path: Path, uninterrupted: tuple[Path, Outcome, Any]) -> None:
    folder, expected, options = uninterrupted
    for step in range(1, 13):
        assert train(tmp_path, stop_at(step), **options).reason == "signal"
    assert_same_course(tmp_path, train(tmp_path, **options), folder, expected)


def test_stopped_and_killed_alternately(tmp_path: Path, uninterrupted: tuple[Path, Outcome, Any]) -> None:
    folder, expected, options = uninterrupted
    for step in range(2, 13):
        if step % 2:
            train(tmp_path, stop_at(step), **options)
        else:
            with pytest.raises(PowerCutError):
                train(tmp_path, cut_at(step), **options)
    assert_same_course(tmp_path, train(tmp_path, **options), folder, expected)


def test_finished_run_gives_the_same_result_again(tmp_path: Path, uninterrupted: tuple[Path, Outcome, Any]) -> None:
    folder, expected, options = uninterrupted
    train(tmp_path, **options)
    events: list[Event] = []
    assert_same_course(tmp_path, train(tmp_path, events.append, **options), folder, expected)
    assert [type(event) for event in events] == [Started]


def test_every_batch_is_used_once_despite_stops(tmp_path: Path) -> None:
    seen: list[Any] = []

    def forward(model: nn.Module, ids: Tensor) -> Tensor:
        seen.append(ids.tolist())
        return predict(model, ids)

    for step in (1, 4, 5, 9):
        train(tmp_path, stop_at(step), forward=forward, accumulate=3)
    train(tmp_path, forward=forward, accumulate=3)
    data = Numbers()
    assert seen == [data.batch(*divmod(cursor, 5)).inputs["ids"].tolist() for cursor in range(36)]


def test_best_after_the_resumed_step_is_reset(tmp_path: Path) -> None:
    """Two better steps after the checkpoint replaced its best weights; on a GPU they may not be reproduced."""
    options: dict[str, Any] = {"valid": Numbers(batches=2), "valid_every": 1, "final": "best", "lr": 0.05}
    with pytest.raises(PowerCutError):
        train(tmp_path, cut_at(9), **options)
    checkpoint = newest(tmp_path)
    best = CheckpointStore(tmp_path / "best")
    assert checkpoint.state["progress"]["best_step"] not in best.steps(), "invalid test: the best is still there"
    found = train(tmp_path, lr_end=0.0, schedule="constant", **(options | {"lr": 100.0}))  # no step improves
    assert found.progress.best_step in best.steps()
    assert found.progress.best_step > checkpoint.step
    assert_same_tensors(found.weights, best.load(found.progress.best_step).model)


@pytest.mark.parametrize("change", [{"data": Numbers("others")}, {"model": Tiny(d_model=5)}], ids=["data", "model"])
def test_folder_of_another_run_raises_and_is_unchanged(tmp_path: Path, change: dict[str, Any]) -> None:
    train(tmp_path, stop_at(7))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(FileError, match=r"belongs to (other training data|another model)"):
        train(tmp_path, **change)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_older_checkpoint_is_used_if_the_newest_is_damaged(tmp_path: Path) -> None:
    uninterrupted = train(tmp_path / "unbroken")
    train(tmp_path / "run", stop_at(11))
    damaged = tmp_path / "run" / "checkpoints" / "step-00000011" / "model.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    events: list[Event] = []
    found = train(tmp_path / "run", events.append)
    assert isinstance(events[0], Started)
    assert events[0].resumed_from == 10
    assert "step-00000011" in events[0].skipped[0]
    assert_same_course(tmp_path / "run", found, tmp_path / "unbroken", uninterrupted)


def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop_at(7), stop_at(7))
    assert newest(tmp_path).step == 5


def test_stop_removes_no_regular_checkpoint(tmp_path: Path) -> None:
    kept = []
    for step in (2, 3, 7, 8, 11):
        train(tmp_path, stop_at(step))
        kept.append(CheckpointStore(tmp_path / "checkpoints").steps())
    assert kept == [[2], [2, 3], [5, 7], [5, 8], [10, 11]]
    train(tmp_path)
    assert CheckpointStore(tmp_path / "checkpoints").steps() == [10, 12]


def test_checkpoint_of_a_stop_is_not_averaged(tmp_path: Path) -> None:
    uninterrupted = train(tmp_path / "unbroken", steps=5, average=2)
    train(tmp_path / "run", stop_at(3), steps=5, average=2)
    assert_same_tensors(train(tmp_path / "run", steps=5, average=2).weights, uninterrupted.weights)
