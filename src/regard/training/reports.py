"""What a step came to, read off the device one step late, so that a GPU never waits for us to look."""

import time
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor


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
