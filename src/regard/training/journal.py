"""What a run reports: step results read one step late, throughput, metrics.jsonl, and events for listeners."""

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

from regard.files.output import refusal
from regard.training.batches import Data
from regard.training.durable import Digest, replace_file
from regard.training.metrics import MetricsFile, json_bytes
from regard.training.ranks import Ranks


class Report(NamedTuple):
    """One step, in plain numbers. `loss` is the mean over its targets, None where it was not finite."""

    step: int
    lr: float
    loss: float | None
    norm: float | None
    stop: bool
    n_tokens: int
    examples: tuple[int, ...]


class _Pending(NamedTuple):
    """A step whose numbers are still on their way."""

    step: int
    lr: float
    numbers: Tensor
    arrived: "torch.cuda.Event | None"
    n_tokens: int
    examples: tuple[int, ...]


class Reports:
    """Steps go in as tensors (loss, norm, good, stop) and come out as Reports, in order."""

    def __init__(self) -> None:
        self._pending: deque[_Pending] = deque()

    def put(self, step: int, lr: float, numbers: Tensor, n_tokens: int, examples: tuple[int, ...]) -> None:
        """A step whose work has been given to the device."""
        arrived = None
        if numbers.is_cuda:
            on_host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            numbers = on_host.copy_(numbers, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
        self._pending.append(_Pending(step, lr, numbers, arrived, n_tokens, examples))

    def take(self, everything: bool = False) -> list[Report]:
        """What has come: on a GPU all but the newest step, which is still being computed, unless `everything`."""
        late = 0 if everything or not self._pending or self._pending[-1].arrived is None else 1
        return [self._settled(self._pending.popleft()) for _ in range(len(self._pending) - late)]

    def _settled(self, pending: _Pending) -> Report:
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


class Pace:
    """Tokens and steps per second over the last few seconds of work; what else is done between steps is told apart."""

    WINDOW = 10.0

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()  # seconds and tokens of each; the sums are kept beside them
        self._seconds, self._tokens = 0.0, 0
        self._paused, self._done = 0.0, 0
        self._since = time.perf_counter()

    def add(self, tokens: int) -> None:
        """One more step of so many tokens is done."""
        seconds = self._lap()
        self._steps.append((seconds, tokens))
        self._seconds, self._tokens, self._done = self._seconds + seconds, self._tokens + tokens, self._done + 1
        while len(self._steps) > 3 and self._seconds > self.WINDOW:
            seconds, tokens = self._steps.popleft()
            self._seconds, self._tokens = self._seconds - seconds, self._tokens - tokens

    def again(self) -> None:
        """The time since the last step went into something else: validation, saving, getting ready."""
        pause = self._lap()
        self._paused += pause if self._done else 0.0

    @property
    def seconds_per_step(self) -> float | None:
        """Of work, and of what lies between two steps on the average; None before the first step."""
        return self._seconds / len(self._steps) + self._paused / self._done if self._done else None

    @property
    def tokens_per_second(self) -> float | None:
        """Of work alone; None before the first step."""
        return self._tokens / self._seconds if self._seconds > 0 else None

    def _lap(self) -> float:
        before, self._since = self._since, time.perf_counter()
        return self._since - before


SECONDS = 0.2
ROWS = 4
"""Of a batch: enough to count what a token takes."""


def measured_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of large square matrix products, the best of several tries in about 0.2 s."""
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
    """What one token per second is, as a share of all devices' peak; None where the operations cannot be counted.

    A few rows of the first batch are enough. They leave no gradient, and in eval mode no statistic either.
    """
    device = ranks.device
    whole = data.batch(0, 0)
    batch = whole.part(0, max(1, len(whole.targets) // ROWS))
    inputs = {name: each.to(device) for name, each in batch.inputs.items()}
    objective.eval()
    with autocast:
        dtype = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32
        operations = counted_operations(lambda: objective(inputs, batch.targets.to(device)))
    objective.zero_grad(set_to_none=True)
    peak = ranks.world * measured_peak(device, dtype)
    return operations / max(1, batch.n_tokens) / peak if operations else None


def counted_operations(loss: Callable[[], Tensor]) -> int:
    """Operations of one forward and backward pass: products of matrices and attention, an addition counted as one."""
    counter = FlopCounterMode(display=False)
    with counter:
        loss().backward()
    return counter.get_total_flops()


Reason = Literal["steps", "patience", "already", "signal"]
"""Why a run ended: all steps done; nothing better for too long; it had ended before; it was asked to stop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """Training begins after `step` of `steps`.

    resumed_from  the step of the checkpoint it goes on from; None for a new run
    skipped       a sentence for each newer checkpoint that could not be used
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
    """One optimizer update is done, or was left out because its loss was not finite.

    loss         None where the step was skipped
    norm         of the gradient, before clipping
    share        of the measured peak of the device, 0 to 1; None where no peak was measured
    eta_seconds  until the last step; None as long as nobody can tell
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
    """The validation set was looked at; `best` is the lowest loss so far, this one included."""

    step: int
    loss: float
    best: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """A checkpoint is in place."""

    step: int
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """The run ended; `figures` are what it is remembered by."""

    step: int
    reason: Reason
    figures: Mapping[str, Any] = field(default_factory=dict)


Event = Started | Stepped | Validated | Saved | Finished
Listener = Callable[[Event], None]


METRICS = "metrics.jsonl"
WRITE_SECONDS = 0.5
"""Lines are written together: one at a time, a step of few milliseconds would feel it. A checkpoint waits for them."""


class Journal:
    """Of the process that writes; the others have one that is silent.

    share_per_rate   what a token per second is, as a share of the device's measured peak; None where nobody knows
    """

    def __init__(self, folder: Path, steps: int, listeners: Sequence[Listener], *, silent: bool) -> None:
        self.folder, self.steps, self.listeners, self.silent = folder, steps, listeners, silent
        self.metrics = MetricsFile(folder / METRICS)
        self.pace = Pace()
        self.share_per_rate: float | None = None
        self._lines: list[dict[str, Any]] = []  # not written yet; a validation may still be added to the last
        self._wrote = time.monotonic()

    def begin(self, step: int, known: Digest | None = None) -> None:
        """Go on after `step`: what was written down after it happened in a course that is forgotten.

        known   the metrics as they were at `step`: nothing of them may have changed
        """
        if self.silent:
            return
        if known is None:
            self.metrics.cut(step)
        else:
            self.metrics.go_back(step, known)

    def tell(self, event: Event) -> None:
        """Let everybody know."""
        if not self.silent:
            for listener in self.listeners:
                listener(event)

    def step(self, report: Report) -> None:
        """Write down and tell one step; of one that was left out, also which examples were in it."""
        self.pace.add(report.n_tokens)
        if self.silent:
            return
        if time.monotonic() - self._wrote > WRITE_SECONDS:
            self._write()
        rate, seconds = self.pace.tokens_per_second, self.pace.seconds_per_step
        is_bad = report.loss is None
        line = {"step": report.step, "loss": report.loss, "lr": report.lr, "norm": report.norm}
        line |= {"tokens": report.n_tokens, "tokens_per_second": rate and round(rate, 1)}
        if is_bad:
            line["skipped"] = True
            self._keep_bad(report)
        self._lines.append(line)
        share = None if self.share_per_rate is None or rate is None else self.share_per_rate * rate
        eta = None if seconds is None else seconds * (self.steps - report.step)
        self.tell(
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
        """Write the validation into the line of its step, and tell it."""
        if self._lines:
            self._lines[-1]["valid_loss"] = loss
        self.tell(Validated(step=step, loss=loss, best=best))

    def settle(self) -> None:
        """Everything told so far is in the file, and the file is on the disk."""
        if not self.silent:
            self._write()
            self.metrics.sync()

    def _write(self) -> None:
        if self._lines:
            self.metrics.append(self._lines)
        self._lines, self._wrote = [], time.monotonic()

    def _keep_bad(self, report: Report) -> None:
        path = self.folder / "bad" / f"step-{report.step:08d}.json"
        content = json_bytes("examples", {"step": report.step, "examples": list(report.examples)}) + b"\n"
        try:
            path.parent.mkdir(exist_ok=True)
            replace_file(path, content)
        except OSError as error:
            raise refusal(error, path, len(content)) from error
