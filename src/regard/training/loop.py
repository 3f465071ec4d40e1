"""The training loop. A stopped run continues: the same call resumes from the newest checkpoint in the run folder.

Independent of the architecture: `Task.forward` computes logits from a model and named tensors. Randomness is
a pure function of (seed, step, rank), and the order of the data one of (seed, epoch, index). So a checkpoint holds
only weights, the optimizer's state and a few integers.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import FileError, RunError
from regard.messages import say
from regard.training.batches import Data, DeviceBatch, feed
from regard.training.checkpoint_store import CheckpointStore, Snapshot
from regard.training.plan import Plan
from regard.training.processes import Ranks, StopRequest, handle_signals
from regard.training.progress import Progress, averaged, restore, snapshot
from regard.training.run_files import EMPTY, Digest
from regard.training.run_reports import Listener, Reason, RunReports, Saved, Started, StepResults, share_per_rate
from regard.training.sharding import shard
from regard.training.step import (
    Forward,
    GraphedUpdate,
    MicroBatch,
    Objective,
    Update,
    adamw,
    autocast,
    learning_rate,
    validation_loss,
)


class Task(NamedTuple):
    """What is trained: a model, the function that computes its logits, and its data."""

    model: nn.Module
    forward: Forward
    data: Data
    valid: Data | None = None


class Callback(NamedTuple):
    """A function called with the step before the first step, every `every` steps, and after the last.

    All processes need the same callbacks, so that all pause at the same steps. The first one calls, the others wait;
    with `Plan.shard` all call, because none of them has the whole model.
    """

    every: int
    call: Callable[[int], None]


class Gauge(Protocol):
    """Measures the forwards of some steps, and gives the numbers of a step for metrics.jsonl."""

    def attach(self, learner: nn.Module, accumulate: int) -> None:
        """Begin, on the module that every forward calls."""

    def begins(self, step: int) -> bool:
        """Called before each step; whether it is measured."""

    def take(self, step: int) -> Mapping[str, float]:
        """The numbers of a step that is done; empty if it was not measured."""


class Outcome(NamedTuple):
    """How a run ended, and its final weights, None if it is not finished; `notes` report deviations from the plan.

    With `Plan.shard` each process has its part of the weights; `model.load_state_dict` takes them.
    """

    reason: Reason
    progress: Progress
    weights: dict[str, Tensor] | None
    notes: tuple[str, ...] = ()


def fit(
    task: Task,
    plan: Plan,
    folder: Path,
    ranks: Ranks,
    *,
    listeners: Sequence[Listener] = (),
    callbacks: Sequence[Callback] = (),
    gauge: Gauge | None = None,
) -> Outcome:
    """Train until all steps are done, a signal requests a stop, or patience runs out. Resumes the run in `folder`.

    gauge   measures some steps; only the first process uses it

    Raises RunError if the loss stays non-finite, FileError if the folder belongs to other data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # on a GPU, float32 products use its tensor cores
    try:
        with handle_signals() as request:
            return _Run(task, plan, folder, ranks, request, listeners, callbacks, gauge).run()
    finally:
        torch.set_float32_matmul_precision(precision)


class _Run:
    """One call of `fit`."""

    def __init__(
        self,
        task: Task,
        plan: Plan,
        folder: Path,
        ranks: Ranks,
        request: StopRequest,
        listeners: Sequence[Listener],
        callbacks: Sequence[Callback],
        gauge: Gauge | None,
    ) -> None:
        self.gauge = gauge if ranks.is_first else None
        self.task, self.plan, self.request, self.callbacks = task, plan, request, callbacks
        self.ranks = replace(ranks, request=request)
        self.model = shard(task.model, self.ranks) if plan.shard else task.model.to(ranks.device)
        self.optimizer = adamw(self.model, plan)
        self.checkpoints = self._store(folder / "checkpoints", plan.keep, plan.save_every)
        self.best = self._store(folder / "best")
        self.run_reports = RunReports(folder, plan.steps, listeners, silent=not ranks.is_first)
        self.progress = Progress(data=task.data.fingerprint)
        self.step_results = StepResults()
        self.saved = 0  # the step of the newest checkpoint
        self.is_stopping = False
        self.has_varying_shapes = _has_varying_shapes(task.data)

    def _store(self, folder: Path, *options: int) -> CheckpointStore:
        """The checkpoints in a folder: of a divided model, written by all processes."""
        if not self.plan.shard:
            return CheckpointStore(folder, *options)
        from regard.training.sharded_store import ShardedStore  # imports torch.distributed.checkpoint

        return ShardedStore(folder, self.ranks, self.model.state_dict(), *options)

    # --- from beginning to end -----------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Train the remaining steps."""
        started = self._begin()
        plan = self.plan
        losses: dict[str, Any] = {name: getattr(plan, name) for name in ("smoothing", "agreement", "alignment")}
        objective = Objective(self.model, self.task.forward, **losses)
        self.run_reports.share_per_rate = share_per_rate(objective, self.task.data, self.ranks, self._autocast())
        self._run_callbacks()
        update = self._update(objective)
        self.run_reports.notify(started)
        self.run_reports.throughput.end_pause()
        progress = self.progress
        with closing(feed(self.task.data, progress.cursor, self.ranks)) as batches:
            while progress.step < plan.steps and not self._out_of_patience():
                self._take_step(update, batches)
                self._process_reports()
                self._pause()  # before a stop: the next call begins after this step and would not do it
                if self.is_stopping:
                    return self._stopped()
        return self._finished()

    def _update(self, objective: Objective) -> Update | GraphedUpdate:
        """The function that takes a step: plain, compiled, or captured as a CUDA graph."""
        learner: Any = objective if self.plan.shard else self.ranks.distributed(objective)
        if self.plan.compile:
            learner = torch.compile(learner)
        if self.gauge is not None:
            self.gauge.attach(learner, self.plan.accumulate)
        update = Update(learner, self.model, self.optimizer, self.plan, self.ranks, self.request)
        is_captured = self.plan.capture and self.ranks.device.type == "cuda" and self.ranks.world == 1
        return GraphedUpdate(update) if is_captured else update

    def _begin(self) -> Started:
        """Restore the newest complete checkpoint."""
        found = self.checkpoints.newest()
        known: Digest | None = EMPTY
        if found.snapshot is not None:
            self.progress = restore(found.snapshot, self.model, self.optimizer, self.progress)
            if self.plan.final == "best" and self.progress.best_step not in self.best.steps():
                self.progress.reset_best()
            known = Digest(**found.snapshot.state["metrics"]) if "metrics" in found.snapshot.state else None
        elif found.skipped:  # a new start would overwrite checkpoints that may still be repaired
            raise FileError("run-no-checkpoint", path=str(self.checkpoints.folder), reason=found.skipped[0].reason)
        step = self.saved = self.progress.step
        self.ranks.wait()  # all processes must have read before one of them writes
        self.run_reports.begin(step, known)
        self._remove_leftovers()
        return Started(
            step=step,
            steps=self.plan.steps,
            ranks=self.ranks.world,
            device=str(self.ranks.device),
            parameters=sum(weight.numel() for weight in self.model.parameters()),
            resumed_from=None if found.snapshot is None else step,
            skipped=tuple(str(skipped.reason) for skipped in found.skipped),
        )

    def _remove_leftovers(self) -> None:
        """Remove partial files of a killed process: it may have died in its last save, and no further save follows."""
        for store in (self.checkpoints, self.best):
            if self.ranks.is_first and store.folder.is_dir():
                with suppress(OSError):  # the next save tries again and raises
                    store.sweep()

    def _stopped(self) -> Outcome:
        """Save the run after a stop request."""
        self._process_reports(everything=True)
        if self.saved != self.progress.step:
            self._save()
        return Outcome("signal", self.progress, None)

    def _finished(self) -> Outcome:
        """The final weights: the best ones, or the mean of the newest checkpoints."""
        plan, progress = self.plan, self.progress
        reason: Reason = "steps" if progress.step >= plan.steps else "patience"
        if plan.final == "best" and progress.best_step:
            return Outcome(reason, progress, self._best_weights())
        notes = []
        if plan.final == "best":
            notes.append(say("train-best-absent", path=str(self.best.folder)))
        if (found := len(self.checkpoints.last(plan.average))) < plan.average:
            notes.append(say("train-averaged", found=found, average=plan.average))
        return Outcome(reason, progress, averaged(self.checkpoints.models(plan.average)), tuple(notes))

    def _best_weights(self) -> dict[str, Tensor]:
        """The weights of the step with the lowest validation loss. Raises FileError if they are damaged."""
        try:
            return self.best.load(self.progress.best_step).model
        except FileError as error:
            raise FileError("run-best-damaged", path=str(self.best.folder), reason=error) from error

    def _out_of_patience(self) -> bool:
        return self.plan.patience is not None and self.progress.waited >= self.plan.patience

    # --- one step ------------------------------------------------------------------------------------------

    def _take_step(self, update: Update | GraphedUpdate, batches: Iterator[DeviceBatch]) -> None:
        """Launch one step on the device; its result is read later."""
        plan, ranks, progress = self.plan, self.ranks, self.progress
        progress.step += 1
        progress.cursor += plan.accumulate
        seed_step(plan.seed, progress.step, ranks.rank)
        self.model.train()
        micro = [next(batches) for _ in range(plan.accumulate)]
        lr = learning_rate(plan, progress.step)
        update.prepare(lr=lr, n_targets=sum(batch.n_targets for batch in micro))
        is_measured = self.gauge is not None and self.gauge.begins(progress.step)
        run = update.without_graph if is_measured else update
        numbers = run([self._mark_dynamic(batch.inputs, batch.targets) for batch in micro])
        examples = tuple(example for batch in micro for example in batch.examples)
        self.step_results.put(progress.step, lr, numbers, sum(batch.n_tokens for batch in micro), examples)

    def _process_reports(self, everything: bool = False) -> None:
        """Record the results of finished steps. Raises RunError after `bad_steps` non-finite steps in a row."""
        progress = self.progress
        self.is_stopping |= self.ranks.world == 1 and self.request.is_set
        for report in self.step_results.take(everything or self._is_due()):
            self.is_stopping |= report.stop
            progress.skipped += report.loss is None
            progress.bad_in_a_row = 0 if report.loss is not None else progress.bad_in_a_row + 1
            self.run_reports.step(report, {} if self.gauge is None else self.gauge.take(report.step))
            if progress.bad_in_a_row >= self.plan.bad_steps:
                self.run_reports.flush()
                key = "run-not-finite" if self.saved else "run-never-finite"
                raise RunError(key, step=report.step, count=progress.bad_in_a_row, saved=self.saved)

    # --- between steps ---------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether a validation, callback or save follows this step and needs its result."""
        plan, step = self.plan, self.progress.step
        every = [plan.save_every, *(callback.every for callback in self.callbacks)]
        if self.task.valid is not None and plan.valid_every is not None:
            every.append(plan.valid_every)
        return step >= plan.steps or any(step % each == 0 for each in every)

    def _pause(self) -> None:
        """Validate, run callbacks and save, if due."""
        if not self._is_due():
            return
        step, plan = self.progress.step, self.plan
        is_last = step >= plan.steps
        if self.task.valid is not None and (is_last or (plan.valid_every is not None and step % plan.valid_every == 0)):
            self._validate(self.task.valid)
        self._run_callbacks()
        if is_last or step % plan.save_every == 0 or self._out_of_patience():
            self._save()
        self.run_reports.throughput.end_pause()

    def _validate(self, valid: Data) -> None:
        """Compute the validation loss; save the weights if they are the best and the plan needs them."""
        progress = self.progress
        loss = validation_loss(self.model, self.task.forward, valid, self.ranks, self._autocast)
        if not math.isfinite(loss):
            self.run_reports.flush()
            raise RunError("run-validation-not-finite", step=progress.step)
        progress.waited += 1
        if progress.best is None or loss < progress.best:
            progress.best, progress.best_step, progress.waited = loss, progress.step, 0
            if self.plan.final == "best":
                self._save_best()
        self.run_reports.validated(progress.step, loss, progress.best)

    def _save_best(self) -> None:
        """Save the current weights as the best."""
        if self._saves:
            self.best.save(self._snapshot(None))
        self.ranks.wait_for_first()

    def _save(self) -> None:
        """Save a checkpoint."""
        self.run_reports.flush()
        if self._saves:
            now = self._snapshot(self.optimizer)
            if self.ranks.is_first:
                now.state["metrics"] = self.run_reports.metrics.digest()._asdict()
            path = self.checkpoints.save(now)
            self.run_reports.notify(Saved(step=self.progress.step, path=path))
        self.saved = self.progress.step
        self.ranks.wait_for_first()

    @property
    def _saves(self) -> bool:
        """Whether this process writes: all do for a divided model, else the first one, and the others wait."""
        return self.ranks.is_first or self.plan.shard

    def _snapshot(self, optimizer: torch.optim.AdamW | None) -> Snapshot:
        if self.plan.shard:
            return snapshot(self.progress, self.model, optimizer, self.ranks.summed)
        return snapshot(self.progress, self.model, optimizer)

    def _run_callbacks(self) -> None:
        """Call the callbacks that are due, with the model in eval mode."""
        step = self.progress.step
        due = [callback for callback in self.callbacks if step % callback.every == 0 or step >= self.plan.steps]
        if due and (self.ranks.is_first or self.plan.shard):
            self.model.eval()
            with torch.no_grad():
                for callback in due:
                    callback.call(step)
        if due:
            self.ranks.wait_for_first()

    # --- precision and compilation -----------------------------------------------------------------------------

    def _autocast(self) -> AbstractContextManager[Any]:
        return autocast(self.plan, self.ranks)

    def _mark_dynamic(self, inputs: dict[str, Tensor], targets: Tensor) -> MicroBatch:
        """Mark sizes that vary between batches as dynamic, so that one compiled graph serves all sizes."""
        if self.plan.compile and self.has_varying_shapes:
            for each in (*inputs.values(), targets):
                for dim in range(each.ndim):
                    torch._dynamo.maybe_mark_dynamic(each, dim)
        return inputs, targets


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed a step's dropout as a pure function of (seed, step, rank), so that no generator state must be saved."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0]))


def _has_varying_shapes(data: Data) -> bool:
    """Whether the first few batches differ in shape."""
    batches = [data.batch(0, index) for index in range(min(4, data.batches_per_epoch))]
    return len({tuple(each.shape for each in (batch.targets, *batch.inputs.values())) for batch in batches}) > 1
