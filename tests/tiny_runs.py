"""A tiny training setup for tests: a model of two layers, random batches of varying shapes, and a function that trains.

Shared by the tests of `regard.training`, which is independent of the architecture: this model is used nowhere else.
"""

import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tolerances import assert_same_bits
from torch import Tensor, nn

from regard.training.batches import IGNORED, Batch, Data
from regard.training.checkpoint_store import CheckpointStore, Snapshot
from regard.training.loop import Callback, Outcome, Task, fit
from regard.training.plan import Plan
from regard.training.processes import Ranks
from regard.training.run_reports import Event, Listener, Started, Stepped
from regard.training.step import Forward

VOCAB = 11
ALONE = Ranks(0, 1, torch.device("cpu"))
PLAN: dict[str, Any] = {"steps": 12, "lr": 0.05, "save_every": 5}


class Tiny(nn.Module):
    """A model from ids to logits: matrices with weight decay, a bias without, and dropout."""

    def __init__(self, d_model: int = 6, dropout: float = 0.2, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(VOCAB, d_model)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, VOCAB)

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(self.dropout(self.embedding(ids)))


def predict(model: nn.Module, ids: Tensor) -> Tensor:
    """The `forward` of a Task."""
    return model(ids)


class Numbers:
    """Random data: batches differ in rows and columns, and rows in the number of targets.

    `requested` records the requested (epoch, index), `rows` are the batch sizes, `name` is the fingerprint.
    """

    def __init__(self, name: str = "numbers", batches: int = 5, rows: Sequence[int] = (1, 2, 3, 4)) -> None:
        self.fingerprint, self.batches_per_epoch, self.rows = name, batches, rows
        self.requested: list[tuple[int, int]] = []

    def batch(self, epoch: int, index: int) -> Batch:
        self.requested.append((epoch, index))
        draw = np.random.default_rng([epoch, index])
        B, T = int(draw.choice(self.rows)), int(draw.integers(2, 6))
        ids = torch.from_numpy(draw.integers(0, VOCAB - 1, (B, T)))  # the last id is reserved for `Poisoned`
        targets = torch.from_numpy(draw.integers(0, VOCAB, (B, T)))
        targets[:, 1:][torch.from_numpy(draw.random((B, T - 1)) < 0.3)] = IGNORED
        first = 100 * (epoch * self.batches_per_epoch + index)
        return Batch({"ids": ids}, targets, tuple(range(first, first + B)))


def train(
    folder: Path,
    *listeners: Listener,
    model: nn.Module | None = None,
    forward: Forward = predict,
    data: Data | None = None,
    valid: Data | None = None,
    callbacks: Sequence[Callback] = (),
    ranks: Ranks = ALONE,
    **plan: Any,
) -> Outcome:
    """One call of `fit` in a folder, with PLAN and the given changes."""
    folder.mkdir(exist_ok=True)
    task = Task(model or Tiny(), forward, data or Numbers(), valid)
    return fit(task, Plan(**(PLAN | plan)), folder, ranks, listeners=listeners, callbacks=callbacks)


def at(step: int, act: Callable[[], Any]) -> Listener:
    """Act when the step before `step` is reported: it is finished, but its save, … is not."""

    def listen(event: Event) -> None:
        if isinstance(event, Started | Stepped) and event.step == step - 1:
            act()

    return listen


def stop_at(step: int) -> Listener:
    """Send SIGTERM while `step` is being computed."""
    return at(step, lambda: signal.raise_signal(signal.SIGTERM))


class PowerCutError(Exception):
    """A simulated power failure: everything that is not on the disk is lost."""


def cut_at(step: int) -> Listener:
    """Simulate a power failure while `step` is being computed."""

    def cut() -> None:
        raise PowerCutError

    return at(step, cut)


# --- non-finite losses ---------------------------------------------------------------------------------------


class Poisoned(Numbers):
    """Data in which these micro-batches of every epoch contain an id that makes the loss non-finite."""

    def __init__(self, *poison: int, batches: int = 5) -> None:
        super().__init__(batches=batches)
        self.poison = poison

    def batch(self, epoch: int, index: int) -> Batch:
        batch = super().batch(epoch, index)
        if index in self.poison:
            batch.inputs["ids"][0, 0] = VOCAB - 1
        return batch


def nan_loss(model: nn.Module, ids: Tensor) -> Tensor:
    return predict(model, ids) * (torch.nan if bool((ids == VOCAB - 1).any()) else 1.0)


# --- results of a run ----------------------------------------------------------------------------------------


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run, without its speed."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "tokens_per_second"} for line in lines]


def newest(folder: Path) -> Snapshot:
    found = CheckpointStore(folder / "checkpoints").newest()
    assert found.snapshot is not None
    assert found.skipped == ()
    return found.snapshot


def assert_same_tensors(found: dict[str, Tensor] | None, expected: dict[str, Tensor] | None) -> None:
    assert found is not None
    assert expected is not None
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_same_bits(found[name], value)


def assert_same_course(folder: Path, found: Outcome, other: Path, expected: Outcome) -> None:
    """Assert that two runs are identical bit for bit."""
    assert metrics(folder) == metrics(other)
    assert found.reason == expected.reason
    assert found.progress == expected.progress
    assert_same_tensors(found.weights, expected.weights)
    mine, theirs = newest(folder), newest(other)
    assert mine.step == theirs.step
    assert mine.state["progress"] == theirs.state["progress"]
    assert_same_tensors(mine.model, theirs.model)
    assert_same_tensors(mine.optimizer, theirs.optimizer)
    assert CheckpointStore(folder / "checkpoints").steps() == CheckpointStore(other / "checkpoints").steps()
