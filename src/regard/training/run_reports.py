"""Reports of a training run: step results read one step late, throughput, metrics.jsonl, and events for listeners."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.files.output import write_error
from regard.training.batches import Data
from regard.training.metrics import MetricsFile, json_bytes
from regard.training.processes import Ranks
from regard.training.run_files import Digest, replace_file


class Report(NamedTuple):
    """The result of one step as Python numbers. `loss` is the mean over its targets, None if not finite."""

    step: int
    lr: float
    loss: float | None
    norm: float | None
    stop: bool
    n_tokens: int
    examples: tuple[int, ...]


class _Pending(NamedTuple):
    """A step whose result has not reached the host yet."""

    step: int
    lr: float
    numbers: Tensor
    arrived: "torch.cuda.Event | None"
    n_tokens: int
    examples: tuple[int, ...]


class StepResults:
    """A queue: step results go in as tensors (loss, norm, good, stop) and come out as `Report`s, in order."""

    def __init__(self) -> None:
        self._pending: deque[_Pending] = deque()

    def put(self, step: int, lr: float, numbers: Tensor, n_tokens: int, examples: tuple[int, ...]) -> None:
        """Add a step that was launched on the device."""
        arrived = None
        if numbers.is_cuda:
            on_host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            numbers = on_host.copy_(numbers, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        self._pending.append(_Pending(step, lr, numbers, arrived, n_tokens, examples))

    def take(self, everything: bool = False) -> list[Report]:
        """The reports that are ready: on a GPU all but the newest step, which is still running, unless `everything`."""
        late = 0 if everything or not self._pending or self._pending[-1].arrived is None else 1
        return [self._report(self._pending.popleft()) for _ in range(len(self._pending) - late)]

    def _report(self, pending: _Pending) -> Report:
        if pending.arrived is not None:
            pending.arrived.synchronize()
        loss, norm, good, stop = pending.numbers.tolist()
        is_good = bool(good)
        return Report(
            pending.step,
            pending.lr,
            loss if is_good else None,
            norm if is_good else None,
            bool(stop),
            pending.n_tokens,
            pending.examples,
        )


class Throughput:
    """Tokens and steps per second over the last seconds of training. Pauses between steps are counted separately."""

    WINDOW = 10.0

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()  # seconds and tokens of each step; the sums are kept below
        self._seconds, self._tokens = 0.0, 0
        self._paused, self._done = 0.0, 0
        self._since = time.perf_counter()

    def add(self, tokens: int) -> None:
        """Count a finished step of `tokens` tokens."""
        seconds = self._lap()
        self._steps.append((seconds, tokens))
        self._seconds, self._tokens, self._done = self._seconds + seconds, self._tokens + tokens, self._done + 1
        while len(self._steps) > 3 and self._seconds > self.WINDOW:
            seconds, tokens = self._steps.popleft()
            self._seconds, self._tokens = self._seconds - seconds, self._tokens - tokens

    def end_pause(self) -> None:
        """Count the time since the last step as a pause: validation, saving, preparation."""
        pause = self._lap()
        self._paused += pause if self._done else 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Mean seconds of a step plus mean seconds of pause per step; None before the first step."""
        return self._seconds / len(self._steps) + self._paused / self._done if self._done else None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second of training without pauses; None before the first step."""
        return self._tokens / self._seconds if self._seconds > 0 else None

    def _lap(self) -> float:
        before, self._since = self._since, time.perf_counter()
        return self._since - before


SECONDS = 0.2
ROWS = 4
"""Rows of a batch used to count the operations per token."""


def measured_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of large square matrix products, the best of several trials in about 0.2 s."""
    n = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        product = a @ b
        _finish(product)
        best = min(best, time.perf_counter() - start)
    return 2 * n**3 / best


def _finish(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def share_per_rate(
    objective: nn.Module, data: Data, ranks: Ranks, autocast: AbstractContextManager[Any]
) -> float | None:
    """The share of all devices' peak that one token per second uses; None if the operations cannot be counted.

    Runs a few rows of the first batch, in eval mode so that no statistics change. No gradient is left.
    """
    device = ranks.device
    whole = data.batch(0, 0)
    batch = whole.shard(0, max(1, len(whole.targets) // ROWS))
    inputs = {name: each.to(device) for name, each in batch.inputs.items()}
    objective.eval()
    with autocast:
        dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        operations = counted_operations(lambda: objective(inputs, batch.targets.to(device)))
    objective.zero_grad(set_to_none=True)
    objective.train()
    peak = ranks.world * measured_peak(device, dtype)
    return operations / max(1, batch.n_tokens) / peak if operations else None


def counted_operations(loss: Callable[[], Tensor]) -> int:
    """Operations of one forward and backward pass: matrix products and attention; an addition counts as one."""
    counter = FlopCounterMode(display=False)
    with counter:
        loss().backward()
    return counter.get_total_flops()


Reason = Literal["steps", "patience", "already", "signal"]
"""Why a run ended: all steps done; no improvement for too long; already finished earlier; a stop signal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """Training begins after `step` of `steps`.

    resumed_from  the step of the checkpoint that the run continues from; None for a new run
    skipped       the reason for each newer checkpoint that could not be used
    """

    step: int
    steps: int
    ranks: int = 1
    device: str = "cpu"
    parameters: int = 0
    resumed_from: int | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stepped:
    """One optimizer update is done, or was skipped because its loss was not finite.

    loss         None if the step was skipped
    norm         of the gradient, before clipping
    share        of the device's measured peak, 0 to 1; None if no peak was measured
    eta_seconds  estimated seconds to the last step; None if unknown
    """

    step: int
    loss: float | None
    lr: float
    norm: float | None = None
    tokens_per_second: float | None = None
    share: float | None = None
    eta_seconds: float | None = None
    skipped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Validated:
    """The validation loss was computed; `best` is the lowest so far, this one included."""

    step: int
    loss: float
    best: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """A checkpoint was saved."""

    step: int
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The run ended; `figures` are its final results."""

    step: int
    reason: Reason
    figures: Mapping[str, Any] = field(default_factory=dict)


Event = Started | Stepped | Validated | Saved | Finished
Listener = Callable[[Event], None]


METRICS = "metrics.jsonl"
WRITE_SECONDS = 0.5
"""Lines are written in groups: single writes would slow a step of a few milliseconds. A checkpoint waits for them."""


class RunReports:
    """Writes metrics.jsonl and notifies listeners. Only the first process writes; in the others it is silent.

    share_per_rate   the share of the device's measured peak that one token per second uses; None if unknown
    """

    def __init__(self, folder: Path, steps: int, listeners: Sequence[Listener], *, silent: bool) -> None:
        self.folder, self.steps, self.listeners, self.silent = folder, steps, listeners, silent
        self.metrics = MetricsFile(folder / METRICS)
        self.throughput = Throughput()
        self.share_per_rate: float | None = None
        self._lines: list[dict[str, Any]] = []  # not written yet; a validation may still be added to the last
        self._wrote = time.monotonic()

    def begin(self, step: int, known: Digest | None = None) -> None:
        """Continue after `step`: remove the lines of later steps.

        known   the digest of the metrics file at `step`; raises FileError if the file has changed up to there
        """
        if self.silent:
            return
        if known is None:
            self.metrics.truncate(step)
        else:
            self.metrics.rewind(step, known)

    def notify(self, event: Event) -> None:
        """Send an event to all listeners."""
        if not self.silent:
            for listener in self.listeners:
                listener(event)

    def step(self, report: Report, measured: Mapping[str, float] = {}) -> None:
        """Record a step and notify the listeners. For a skipped step, also write its examples to a file.

        measured   more numbers for its line; NaN and infinity, which JSON cannot write, are left out
        """
        self.throughput.add(report.n_tokens)
        if self.silent:
            return
        if time.monotonic() - self._wrote > WRITE_SECONDS:
            self._write()
        rate, seconds = self.throughput.tokens_per_second, self.throughput.seconds_per_step
        is_bad = report.loss is None
        line = {"step": report.step, "loss": report.loss, "lr": report.lr, "norm": report.norm}
        line |= {"tokens": report.n_tokens, "tokens_per_second": rate and round(rate, 1)}
        line |= {name: number for name, number in measured.items() if math.isfinite(number)}
        if is_bad:
            line["skipped"] = True
            self._write_examples(report)
        self._lines.append(line)
        share = None if self.share_per_rate is None or rate is None else self.share_per_rate * rate
        eta = None if seconds is None else seconds * (self.steps - report.step)
        self.notify(
            Stepped(
                step=report.step,
                loss=report.loss,
                lr=report.lr,
                norm=report.norm,
                tokens_per_second=rate,
                share=share,
                eta_seconds=eta,
                skipped=is_bad,
            )
        )

    def validated(self, step: int, loss: float, best: float) -> None:
        """Add the validation loss to the line of its step, and notify the listeners."""
        if self._lines:
            self._lines[-1]["valid_loss"] = loss
        self.notify(Validated(step=step, loss=loss, best=best))

    def flush(self) -> None:
        """Write all lines to the file and sync it to the disk."""
        if not self.silent:
            self._write()
            self.metrics.sync()

    def _write(self) -> None:
        if self._lines:
            self.metrics.append(self._lines)
        self._lines, self._wrote = [], time.monotonic()

    def _write_examples(self, report: Report) -> None:
        path = self.folder / "bad" / f"step-{report.step:08d}.json"
        content = json_bytes("examples", {"step": report.step, "examples": list(report.examples)}) + b"\n"
        try:
            path.parent.mkdir(exist_ok=True)
            replace_file(path, content)
        except OSError as error:
            raise write_error(error, path, len(content)) from error
