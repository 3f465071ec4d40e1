"""The training loop: steps, final weights, and validation, callbacks and saves between steps."""

import functools
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_runs import (
    PLAN,
    Numbers,
    Tiny,
    assert_same_course,
    assert_same_tensors,
    metrics,
    newest,
    predict,
    train,
)
from tolerances import assert_close, assert_same_bits
from torch import Tensor, nn

from regard.errors import FileError
from regard.training import loop
from regard.training.batches import IGNORED, Batch
from regard.training.checkpoint_store import CheckpointStore
from regard.training.loop import Callback, seed_step
from regard.training.plan import Plan
from regard.training.processes import Ranks
from regard.training.run_reports import Event, Saved, Stepped, Validated
from regard.training.step import cross_entropy, learning_rate


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncing the disk and measuring the device's peak."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(loop, "share_per_rate", lambda *about: None)


# --- steps ---------------------------------------------------------------------------------------------------


def test_equals_a_plain_pytorch_loop(tmp_path: Path) -> None:
    """The loop compared with ten lines of PyTorch."""
    plan: dict[str, Any] = {"clip": 0.3, "schedule": "cosine", "warmup": 3, "weight_decay": 0.2, "accumulate": 2}
    found = train(tmp_path, smoothing=0.1, **plan)
    model, data = Tiny(), Numbers()
    matrices = [weight for weight in model.parameters() if weight.ndim == 2]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": 0.2},
        {"params": [model.output.bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98))
    for step, line in enumerate(metrics(tmp_path), 1):
        seed_step(0, step, 0)
        batches = [data.batch(*divmod(2 * step - 2 + k, 5)) for k in range(2)]
        count = sum(batch.n_targets for batch in batches)
        losses = [cross_entropy(predict(model, **batch.inputs), batch.targets, 0.1) for batch in batches]
        loss = torch.stack(losses).sum() / count
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(Plan(**(PLAN | plan)), step)
        optimizer.step()
        assert line["step"] == step
        assert line["loss"] == pytest.approx(loss.item(), rel=1e-5)
        assert line["norm"] == pytest.approx(norm.item(), rel=1e-4)
        assert line["lr"] == optimizer.param_groups[0]["lr"]
        assert line["tokens"] == sum(batch.n_tokens for batch in batches)
    assert found.weights is not None
    assert (found.reason, found.progress.step, found.progress.cursor) == ("steps", 12, 24)
    for name, weight in model.state_dict().items():
        assert_close(found.weights[name], weight, "gradient")


class Joined(Numbers):
    """`many` batches combined into one, padded to the longest."""

    def __init__(self, many: int) -> None:
        super().__init__(batches=2)
        self.many, self.parts = many, Numbers(batches=2 * many)

    def batch(self, epoch: int, index: int) -> Batch:
        parts = [self.parts.batch(epoch, index * self.many + k) for k in range(self.many)]
        longest = max(part.targets.shape[1] for part in parts)

        def padded(x: Tensor, value: int) -> Tensor:
            return nn.functional.pad(x, (0, longest - x.shape[1]), value=value)

        ids = torch.cat([padded(part.inputs["ids"], 0) for part in parts])
        targets = torch.cat([padded(part.targets, IGNORED) for part in parts])
        return Batch({"ids": ids}, targets, tuple(example for part in parts for example in part.examples))


@settings(max_examples=8)
@given(st.integers(2, 5), st.sampled_from([None, 0.1]))
def test_micro_batches_equal_one_large_batch(
    tmp_path_factory: pytest.TempPathFactory, many: int, clip: float | None
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    options: dict[str, Any] = {"steps": 4, "clip": clip, "smoothing": 0.1}
    parts = Numbers(batches=2 * many)
    train(folder / "micro", model=Tiny(dropout=0.0).double(), data=parts, accumulate=many, **options)
    train(folder / "whole", model=Tiny(dropout=0.0).double(), data=Joined(many), **options)
    for mine, theirs in zip(metrics(folder / "micro"), metrics(folder / "whole"), strict=True):
        assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        assert mine["norm"] == pytest.approx(theirs["norm"], rel=1e-5)
    for name, weight in newest(folder / "whole").model.items():
        assert_close(newest(folder / "micro").model[name], weight, "gradient", dtype="float32")


def test_gradient_is_clipped_and_its_norm_reported_unclipped(tmp_path: Path) -> None:
    """Adam's update hardly depends on the gradient's norm, but its state does."""
    for name, clip in (("cut", 0.01), ("free", None)):
        train(tmp_path / name, steps=1, clip=clip)
    clipped, free = (newest(tmp_path / name).optimizer for name in ("cut", "free"))
    norm = metrics(tmp_path / "free")[0]["norm"]
    assert metrics(tmp_path / "cut")[0]["norm"] == norm > 0.01
    for place, value in free.items():
        if place.endswith("exp_avg"):
            assert_close(clipped[place], value * (0.01 / norm), "gradient")


def test_two_passes_per_row(tmp_path: Path) -> None:
    train(tmp_path / "one", agreement=None)
    train(tmp_path / "two", agreement=4.0)
    train(tmp_path / "still", agreement=4.0, model=Tiny(dropout=0.0))
    train(tmp_path / "none", agreement=None, model=Tiny(dropout=0.0))
    losses = {name: [line["loss"] for line in metrics(tmp_path / name)] for name in ("one", "two", "still", "none")}
    assert losses["one"] != losses["two"]
    np.testing.assert_allclose(losses["still"], losses["none"], rtol=1e-5)


def test_bfloat16_keeps_float32_weights(tmp_path: Path) -> None:
    for precision in ("float32", "bfloat16"):
        train(tmp_path / precision, precision=precision, model=Tiny(dropout=0.0))
    full, half = ([line["loss"] for line in metrics(tmp_path / name)] for name in ("float32", "bfloat16"))
    assert full != half
    np.testing.assert_allclose(half, full, rtol=0.02)
    assert {weight.dtype for weight in newest(tmp_path / "bfloat16").model.values()} == {torch.float32}


def test_batch_of_only_padding_is_a_step(tmp_path: Path) -> None:
    class Hollow(Numbers):
        def batch(self, epoch: int, index: int) -> Batch:
            batch = super().batch(epoch, index)
            return batch._replace(targets=torch.full_like(batch.targets, IGNORED)) if index == 2 else batch

    found = train(tmp_path, data=Hollow(), smoothing=0.1, agreement=1.0)
    hollow = [line for line in metrics(tmp_path) if line["step"] % 5 == 3]
    assert [(line["loss"], line["norm"], line["tokens"]) for line in hollow] == [(0.0, 0.0, 0)] * 2
    assert found.progress.skipped == 0


@pytest.mark.parametrize("rows", [(0,), (0, 2)])
def test_batches_without_rows_are_steps(tmp_path: Path, rows: tuple[int, ...]) -> None:
    found = train(tmp_path, data=Numbers(rows=rows), valid=Numbers(rows=rows), agreement=1.0)
    assert found.progress.skipped == 0
    assert all(math.isfinite(line["loss"]) for line in metrics(tmp_path))


def test_randomness_is_a_function_of_seed_step_and_rank() -> None:
    def drawn(*key: int) -> list[float]:
        seed_step(*key)
        return torch.rand(4).tolist()

    keys = [(0, 1, 0), (0, 2, 0), (1, 1, 0), (0, 1, 1), (2**63, 1, 0)]
    assert len({tuple(drawn(*key)) for key in keys}) == len(keys)
    assert drawn(0, 1, 0) == drawn(0, 1, 0)


def test_only_the_seed_determines_the_run(tmp_path: Path) -> None:
    for name, seed, before in (("a", 1, 5), ("b", 1, 6), ("c", 2, 5)):
        model = Tiny(seed=0)
        torch.manual_seed(before)
        train(tmp_path / name, model=model, seed=seed)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    assert metrics(tmp_path / "a") != metrics(tmp_path / "c")


def test_measuring_the_peak_does_not_change_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = train(tmp_path / "plain")
    monkeypatch.undo()
    shares: list[float | None] = []

    def listen(event: Event) -> None:
        if isinstance(event, Stepped):
            shares.append(event.share)

    measured = train(tmp_path / "measured", listen)
    assert_same_course(tmp_path / "measured", measured, tmp_path / "plain", plain)
    assert all(share is not None and 0 < share < 1 for share in shares)


# --- torch.compile -------------------------------------------------------------------------------------------


def graphs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The graphs compiled from now on; they run unoptimised, because code generation would take minutes."""
    made: list[int] = []
    torch._dynamo.reset()

    def keep(graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
        made.append(len(graph.graph.nodes))
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=keep))
    return made


@pytest.mark.parametrize("rows", [(2, 3, 4, 5), (3,)], ids=["ragged rows", "ragged columns"])
def test_varying_shapes_are_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: tuple[int, ...]
) -> None:
    data = Numbers(rows=rows, batches=12)
    assert len({data.batch(0, index).targets.shape for index in range(12)}) > 3
    train(tmp_path / "plain", data=data, valid=data, valid_every=4)
    made = graphs(monkeypatch)
    train(tmp_path / "compiled", data=data, valid=data, valid_every=4, compile=True)
    assert len(made) == 1
    plain, compiled = ([line["loss"] for line in metrics(tmp_path / name)] for name in ("plain", "compiled"))
    np.testing.assert_allclose(compiled, plain, rtol=1e-5)


@pytest.mark.long
def test_real_compilation(tmp_path: Path) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    data = Numbers(rows=(2, 3, 4, 5), batches=12)
    train(tmp_path / "plain", data=data, model=Tiny(dropout=0.0))
    train(tmp_path / "compiled", data=data, model=Tiny(dropout=0.0), compile=True)
    plain, compiled = ([line["loss"] for line in metrics(tmp_path / name)] for name in ("plain", "compiled"))
    np.testing.assert_allclose(compiled, plain, rtol=1e-4)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


# --- final weights -------------------------------------------------------------------------------------------


def test_last_checkpoints_are_averaged(tmp_path: Path) -> None:
    found = train(tmp_path, keep=3, average=3)
    weights = [CheckpointStore(tmp_path / "checkpoints").load(step).model for step in (5, 10, 12)]
    assert found.weights is not None
    for name, weight in found.weights.items():
        mean = torch.stack([each[name].double() for each in weights]).mean(0)
        assert_close(weight, mean, "weights")
    assert found.notes == ()


def test_mean_of_fewer_checkpoints_is_reported(tmp_path: Path) -> None:
    """There were never enough checkpoints, or one was removed."""
    (note,) = train(tmp_path / "short", keep=4, average=4).notes
    assert "the mean of 3 checkpoints instead of 4" in note
    train(tmp_path, keep=3, average=3)
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000010")
    (note,) = train(tmp_path, keep=3, average=3).notes
    assert "the mean of 2 checkpoints instead of 3" in note


@pytest.mark.parametrize("keep", [2, 3])
def test_number_of_kept_checkpoints(tmp_path: Path, keep: int) -> None:
    events: list[Event] = []
    train(tmp_path, events.append, save_every=2, keep=keep)
    assert [event.step for event in events if isinstance(event, Saved)] == [2, 4, 6, 8, 10, 12]
    assert CheckpointStore(tmp_path / "checkpoints").steps() == [2, 4, 6, 8, 10, 12][-keep:]


def validations(folder: Path) -> dict[int, float]:
    return {line["step"]: line["valid_loss"] for line in metrics(folder) if "valid_loss" in line}


def test_best_has_the_lowest_validation_loss(tmp_path: Path) -> None:
    valid = Numbers(batches=2)
    every = train(tmp_path / "every", valid=valid, save_every=1, keep=12, valid_every=1, lr=0.6)
    found = train(tmp_path / "best", valid=valid, valid_every=1, final="best", lr=0.6)
    losses = validations(tmp_path / "best")
    assert losses == validations(tmp_path / "every")
    best = min(losses, key=losses.__getitem__)
    assert 1 < best < 12, "invalid test: the best is the first or the last"
    assert (found.progress.best_step, found.progress.best) == (best, losses[best])
    assert_same_tensors(found.weights, CheckpointStore(tmp_path / "every" / "checkpoints").load(best).model)
    assert every.weights is not None
    assert_same_tensors(every.weights, newest(tmp_path / "every").model)


def test_damaged_best_weights_can_be_removed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"valid": Numbers(batches=2), "valid_every": 1, "final": "best", "lr": 0.6}
    best = train(tmp_path, **options).progress.best_step
    path = tmp_path / "best" / f"step-{best:08d}" / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(FileError, match=rf"best weights are damaged: .*{path.parent.name}.*: remove .*best and run"):
        train(tmp_path, **options)
    shutil.rmtree(tmp_path / "best")  # as the message advises
    found = train(tmp_path, **options)
    assert_same_tensors(found.weights, newest(tmp_path).model)
    assert "the final model uses the last weights" in found.notes[0]


def test_patience_ends_the_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 99, "save_every": 50, "valid_every": 1, "patience": 3, "lr": 0.6}
    found = train(tmp_path, valid=Numbers(batches=2), **options)
    losses = validations(tmp_path)
    best = min(losses, key=losses.__getitem__)
    assert found.reason == "patience"
    assert found.progress.step == best + 3 == len(losses)
    assert newest(tmp_path).step == best + 3
    assert found.weights is not None
    again = train(tmp_path, valid=Numbers(batches=2), **options)
    assert again.reason == "patience"
    assert_same_tensors(again.weights, found.weights)
    assert len(metrics(tmp_path)) == best + 3


def test_without_patience_all_steps_run(tmp_path: Path) -> None:
    assert train(tmp_path, valid=Numbers(batches=2), steps=20, valid_every=1, lr=0.6).reason == "steps"


def test_last_step_is_always_validated(tmp_path: Path) -> None:
    events: list[Event] = []
    train(tmp_path, events.append, valid=Numbers(batches=2), valid_every=5)
    assert list(validations(tmp_path)) == [5, 10, 12]
    validated = [(event.step, event.loss) for event in events if isinstance(event, Validated)]
    assert dict(validated) == validations(tmp_path)
    train(tmp_path / "last", valid=Numbers(batches=2))
    assert list(validations(tmp_path / "last")) == [12]


# --- callbacks -------------------------------------------------------------------------------------------------


def test_callback_schedule(tmp_path: Path) -> None:
    calls: list[tuple[str, int, bool, bool]] = []
    model = Tiny()

    def callback(name: str, step: int) -> None:
        calls.append((name, step, model.training, torch.is_grad_enabled()))
        torch.rand(3)

    callbacks = [Callback(5, functools.partial(callback, "a")), Callback(7, functools.partial(callback, "b"))]
    filmed = train(tmp_path / "filmed", model=model, callbacks=callbacks)
    assert calls == [
        (name, step, False, False)
        for name, step in (("a", 0), ("b", 0), ("a", 5), ("b", 7), ("a", 10), ("a", 12), ("b", 12))
    ]
    plain = train(tmp_path / "plain")
    assert_same_course(tmp_path / "filmed", filmed, tmp_path / "plain", plain)


def test_callback_gets_the_model_of_its_step(tmp_path: Path) -> None:
    model = Tiny()
    seen: dict[int, Tensor] = {}

    def callback(step: int) -> None:
        seen[step] = model.output.bias.detach().clone()

    train(tmp_path, model=model, callbacks=[Callback(1, callback)], save_every=1, keep=12)
    assert_same_bits(seen[0], Tiny().output.bias.detach())
    for step in range(1, 13):
        assert_same_bits(seen[step], CheckpointStore(tmp_path / "checkpoints").load(step).model["output.bias"])


# --- one process of several ----------------------------------------------------------------------------------


class Second(Ranks):
    """A process that works alone but is not the first."""

    is_first = False


def test_other_processes_write_nothing(tmp_path: Path) -> None:
    events: list[Event] = []
    calls: list[int] = []

    train(
        tmp_path,
        events.append,
        ranks=Second(0, 1, torch.device("cpu")),
        callbacks=[Callback(4, calls.append)],
        valid=Numbers(batches=2),
    )
    assert events == []
    assert calls == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
