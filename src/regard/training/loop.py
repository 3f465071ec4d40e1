"""The loop: batches in, steps taken, a run folder kept such that the same call goes on wherever the last one ended.

It knows no architecture: `Task.forward` makes logits of a model and named tensors. Randomness is a pure function of
(seed, step, rank) and the order of the data one of (seed, epoch, index), so a checkpoint is weights, the optimizer's
memory and a few whole numbers.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import FileError, RunError
from regard.messages import say
from regard.training.batches import Data, Part, feed
from regard.training.checkpoint_store import Store
from regard.training.cuda_graph import Captured
from regard.training.durable import NOTHING, Digest
from regard.training.journal import Journal, Listener, Reason, Reports, Saved, Started, share_per_rate
from regard.training.optimizer import adamw, learning_rate
from regard.training.plan import Plan
from regard.training.progress import Progress, averaged, restore, snapshot
from regard.training.ranks import Ranks
from regard.training.signals import StopRequest, listening
from regard.training.step import Forward, Micro, Objective, Update, autocast, validation_loss


class Task(NamedTuple):
    """What is trained: a model, how its logits are asked for, and its data."""

    model: nn.Module
    forward: Forward
    data: Data
    valid: Data | None = None


class Moment(NamedTuple):
    """Something to be done before the first step, every so many steps, and after the last: `look(step)`.

    Every process knows of it, so that all stop at the same steps; the first one looks, the others wait.
    """

    every: int
    look: Callable[[int], None]


class Outcome(NamedTuple):
    """How a run ended, and the weights that came out, None where it is not finished; `notes` tell what they lack."""

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
    moments: Sequence[Moment] = (),
) -> Outcome:
    """Train until the plan is done, someone asks to stop, or nothing gets better. Goes on from what `folder` holds.

    RunError where the loss stays not finite; FileError where the folder belongs to other data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # on a GPU, products of float32 by its matrix units
    try:
        with listening() as request:
            return _Run(task, plan, folder, ranks, request, listeners, moments).run()
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
        moments: Sequence[Moment],
    ) -> None:
        self.task, self.plan, self.request, self.moments = task, plan, request, moments
        self.ranks = replace(ranks, request=request)
        self.model = task.model.to(ranks.device)
        self.optimizer = adamw(self.model, plan)
        self.checkpoints = Store(folder / "checkpoints", plan.keep, plan.save_every)
        self.best = Store(folder / "best")
        self.journal = Journal(folder, plan.steps, listeners, silent=not ranks.is_first)
        self.progress = Progress(data=task.data.fingerprint)
        self.reports = Reports()
        self.saved = 0  # the step of the newest checkpoint
        self.is_stopping = False
        self.is_ragged = _is_ragged(task.data)

    # --- from beginning to end -----------------------------------------------------------------------------

    def run(self) -> Outcome:
        """All that is left of the plan."""
        started = self._begin()
        objective = Objective(
            self.model, self.task.forward, smoothing=self.plan.smoothing, agreement=self.plan.agreement
        )
        self.journal.share_per_rate = share_per_rate(objective, self.task.data, self.ranks, self._autocast())
        self._look()
        update = self._update(objective)
        self.journal.tell(started)
        self.journal.pace.again()
        progress, plan = self.progress, self.plan
        with closing(feed(self.task.data, progress.cursor, self.ranks)) as parts:
            while progress.step < plan.steps and not self._nothing_gets_better():
                self._take_step(update, parts)
                self._settle()
                self._pause()  # what belongs to this step is never left to the next call, which begins after it
                if self.is_stopping:
                    return self._left()
        return self._finished()

    def _update(self, objective: Objective) -> Update | Captured:
        """What takes a step: as it is written, compiled, captured."""
        learner: Any = self.ranks.together(objective)
        if self.plan.compile:
            learner = torch.compile(learner)
        update = Update(learner, self.model, self.optimizer, self.plan, self.ranks, self.request)
        is_captured = self.plan.capture and self.ranks.device.type == "cuda" and self.ranks.world == 1
        return Captured(update) if is_captured else update

    def _begin(self) -> Started:
        """Go on from the newest checkpoint that is whole."""
        found = self.checkpoints.newest()
        known: Digest | None = NOTHING
        if found.snapshot is not None:
            self.progress = restore(found.snapshot, self.model, self.optimizer, self.progress)
            if self.plan.final == "best" and self.progress.best_step not in self.best.steps():
                self.progress.forget_best()
            known = Digest(**found.snapshot.state["metrics"]) if "metrics" in found.snapshot.state else None
        elif found.skipped:  # to begin again would throw away what may still be mended
            raise FileError("run-no-checkpoint", path=str(self.checkpoints.folder), reason=found.skipped[0].reason)
        step = self.saved = self.progress.step
        self.ranks.wait()  # all have read before one of them writes
        self.journal.begin(step, known)
        self._sweep()
        return Started(
            step=step,
            steps=self.plan.steps,
            ranks=self.ranks.world,
            device=str(self.ranks.device),
            parameters=sum(weight.numel() for weight in self.model.parameters()),
            resumed_from=None if found.snapshot is None else step,
            skipped=tuple(str(skipped.reason) for skipped in found.skipped),
        )

    def _sweep(self) -> None:
        """Remove what a killed process left half made: it may have died in its last save, and no other comes."""
        for store in (self.checkpoints, self.best):
            if self.ranks.is_first and store.folder.is_dir():
                with suppress(OSError):  # the next save tries again, and complains
                    store.sweep()

    def _left(self) -> Outcome:
        """Asked to stop: everything is saved."""
        self._settle(everything=True)
        if self.saved != self.progress.step:
            self._save()
        return Outcome("signal", self.progress, None)

    def _finished(self) -> Outcome:
        """The weights that come out: the best ones, or the mean of the newest."""
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
        """Of the step with the lowest validation loss. FileError, with a way out, where they are damaged."""
        try:
            return self.best.load(self.progress.best_step).model
        except FileError as error:
            raise FileError("run-best-damaged", path=str(self.best.folder), reason=error) from error

    def _nothing_gets_better(self) -> bool:
        return self.plan.patience is not None and self.progress.waited >= self.plan.patience

    # --- one step ------------------------------------------------------------------------------------------

    def _take_step(self, update: Update | Captured, parts: Iterator[Part]) -> None:
        """Give one step to the device; what it came to is asked later."""
        plan, ranks, progress = self.plan, self.ranks, self.progress
        progress.step += 1
        progress.cursor += plan.accumulate
        seed_step(plan.seed, progress.step, ranks.rank)
        self.model.train()
        micro = [next(parts) for _ in range(plan.accumulate)]
        lr = learning_rate(plan, progress.step)
        update.prepare(lr=lr, n_targets=sum(part.n_targets for part in micro))
        numbers = update([self._marked(part.inputs, part.targets) for part in micro])
        examples = tuple(example for part in micro for example in part.examples)
        self.reports.put(progress.step, lr, numbers, sum(part.n_tokens for part in micro), examples)

    def _settle(self, everything: bool = False) -> None:
        """Take up what the steps came to; a run that only goes wrong ends."""
        progress = self.progress
        self.is_stopping |= self.ranks.world == 1 and self.request.asked
        for report in self.reports.take(everything or self._is_due()):
            self.is_stopping |= report.stop
            progress.skipped += report.loss is None
            progress.bad_in_a_row = 0 if report.loss is not None else progress.bad_in_a_row + 1
            self.journal.step(report)
            if progress.bad_in_a_row >= self.plan.bad_steps:
                self.journal.settle()
                key = "run-not-finite" if self.saved else "run-never-finite"
                raise RunError(key, step=report.step, count=progress.bad_in_a_row, saved=self.saved)

    # --- between steps ---------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether something follows this step that needs its outcome."""
        plan, step = self.plan, self.progress.step
        every = [plan.save_every, *(moment.every for moment in self.moments)]
        if self.task.valid is not None and plan.valid_every is not None:
            every.append(plan.valid_every)
        return step >= plan.steps or any(step % each == 0 for each in every)

    def _pause(self) -> None:
        """Validate, look and save, where it is time to."""
        if not self._is_due():
            return
        step, plan = self.progress.step, self.plan
        is_last = step >= plan.steps
        if self.task.valid is not None and (is_last or (plan.valid_every is not None and step % plan.valid_every == 0)):
            self._validate(self.task.valid)
        self._look()
        if is_last or step % plan.save_every == 0 or self._nothing_gets_better():
            self._save()
        self.journal.pace.again()

    def _validate(self, valid: Data) -> None:
        """One look at the validation set; the best weights are kept where they are wanted in the end."""
        progress = self.progress
        loss = validation_loss(self.model, self.task.forward, valid, self.ranks, self._autocast)
        if not math.isfinite(loss):
            self.journal.settle()
            raise RunError("run-validation-not-finite", step=progress.step)
        progress.waited += 1
        if progress.best is None or loss < progress.best:
            progress.best, progress.best_step, progress.waited = loss, progress.step, 0
            if self.plan.final == "best":
                self._keep_best()
        self.journal.validated(progress.step, loss, progress.best)

    def _keep_best(self) -> None:
        """The weights as they are, by the first process; the others wait."""
        if self.ranks.is_first:
            self.best.save(snapshot(self.progress, self.model, None))
        self.ranks.wait_for_first()

    def _save(self) -> None:
        """A checkpoint, by the first process; the others wait."""
        self.journal.settle()
        if self.ranks.is_first:
            now = snapshot(self.progress, self.model, self.optimizer)
            now.state["metrics"] = self.journal.metrics.digest()._asdict()
            path = self.checkpoints.save(now)
            self.journal.tell(Saved(step=self.progress.step, path=path))
        self.saved = self.progress.step
        self.ranks.wait_for_first()

    def _look(self) -> None:
        """The moments that are due, with the model as it is when it is used."""
        step = self.progress.step
        due = [moment for moment in self.moments if step % moment.every == 0 or step >= self.plan.steps]
        if due and self.ranks.is_first:
            self.model.eval()
            with torch.no_grad():
                for moment in due:
                    moment.look(step)
        if due:
            self.ranks.wait_for_first()

    # --- how it is computed ------------------------------------------------------------------------------------

    def _autocast(self) -> AbstractContextManager[Any]:
        return autocast(self.plan, self.ranks)

    def _marked(self, inputs: dict[str, Tensor], targets: Tensor) -> Micro:
        """Tensors whose sizes change from batch to batch, marked so that a graph is compiled once for all sizes."""
        if self.plan.compile and self.is_ragged:
            for each in (*inputs.values(), targets):
                for dim in range(each.ndim):
                    torch._dynamo.maybe_mark_dynamic(each, dim)
        return inputs, targets


def seed_step(seed: int, step: int, rank: int) -> None:
    """Dropout of a step is a pure function of (seed, step, rank): there is no state to be saved."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0]))


def _is_ragged(data: Data) -> bool:
    """Whether batches differ in size, by the first few of them."""
    batches = [data.batch(0, index) for index in range(min(4, data.batches_per_epoch))]
    return len({tuple(each.shape for each in (batch.targets, *batch.inputs.values())) for batch in batches}) > 1
