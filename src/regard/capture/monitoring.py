"""`monitor`: the health of attention while any training loop runs, measured by `watch` on some of its steps.

Hooks on the model count its forwards; only in the forward of a sampled step the model is watched, so the other steps
cost nothing. `health` defines the numbers.
"""

import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from logging import Logger
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from regard.arrays import check_counts, is_number
from regard.capture.dispatch_mode import in_backward
from regard.capture.editing import uncompiled
from regard.capture.health import SEE, SEE_WITHOUT_DISTANCE, Health, Reading, measured, warnings_of
from regard.capture.model_facts import check_module
from regard.capture.watching import Watch, watch
from regard.errors import ArgumentError
from regard.messages import say
from regard.trace import Trace

Log = Callable[[dict[str, float], int], Any]
"""Called with the numbers by name, and the step."""
ENTROPY_FLOOR = 0.1
"""In nats: e^0.1 = 1.1 keys. Below it every head of a layer attends to one key."""
SCORE_LIMIT = 100.0
"""The threshold of QK-clip (Kimi K2, 2025). In bfloat16 scores of this size are 0.5 apart."""
DISTANCE_EVERY = 10
"""Steps between two measurements of the distance, at least: it takes a pass over the keys of its own."""
_NO_LIMIT = 2**50
"""The budget of a sampled step: its statistics are small, and a refusal would end the training."""
_LATE = 2
"""Readings on their way from a GPU, from which the oldest is waited for."""


def monitor(
    model: nn.Module,
    every: int = 100,
    log: Any = None,
    *,
    accumulate: int = 1,
    heads: bool = False,
    layers: Any = None,
    step: int = 0,
    entropy_floor: float = ENTROPY_FLOOR,
    score_limit: float = SCORE_LIMIT,
) -> "Monitor":
    """Measure the attention of `model` at the first step and at every `every`-th step of a training.

    model          what the training loop calls: the compiled or distributed model, if it is one
    log            receives the numbers: a function of (metrics, step), or an object with `add_scalar` (TensorBoard) or
                   `log` (W&B); None: read `latest`
    accumulate     forwards of one step, if gradients are accumulated; the first of them is measured
    heads          also log the numbers of each head
    layers         only these modules, as for `watch`
    step           the steps that are already done, if a training is continued
    entropy_floor  warn once if the mean entropy of a layer falls below, in nats
    score_limit    warn once if a score exceeds it

    Counts forwards in training mode with gradients. The distance is measured at most at every tenth step. Outputs,
    gradients and random numbers stay bit-equal. Where compiled code hides the attention, a sampled step runs the model
    once more, uncompiled and without gradients. Use it as a context manager, or call `close`.

    >>> layer = nn.MultiheadAttention(8, 2)
    >>> x = torch.ones(3, 8)
    >>> with monitor(layer, every=1) as health:
    ...     loss = layer(x, x, x)[0].sum()
    >>> health.step, round(health.latest.metrics()["attention/entropy"], 2)
    (1, 1.1)
    """
    return Monitor(model, every, log, accumulate, heads, layers, step, entropy_floor, score_limit)


class Monitor:
    """What `monitor` returns.

    step     the step of the last forward in training
    latest   the Health of the last sampled step that has arrived; None before
    """

    def __init__(
        self,
        model: nn.Module,
        every: int,
        log: Any,
        accumulate: int,
        heads: bool,
        layers: Any,
        step: int,
        entropy_floor: float,
        score_limit: float,
    ) -> None:
        check_counts(every=(every, 1), accumulate=(accumulate, 1), step=(step, 0))
        for name, value in (("entropy_floor", entropy_floor), ("score_limit", score_limit)):
            if not is_number(value):
                raise ArgumentError("monitor-threshold", name=name, value=value)
        check_module(model, "monitor")
        watch(model, layers=layers)  # raises for invalid arguments now, not during the training
        self._watched = _unwrapped(model)
        self.every, self.accumulate, self.heads, self.step = every, accumulate, heads, step
        self.latest: Health | None = None
        self._log = _logger(log)
        self._model, self._layers = model, layers
        self._floor, self._limit = entropy_floor, score_limit
        self._forwards = 0
        self._see, self._distance_step = SEE, -DISTANCE_EVERY
        self._watch: Watch | None = None
        self._trace: Trace | None = None
        self._arguments: tuple[Any, Any] = ((), {})
        self._reruns = False
        """Whether compiled code hides the attention, so that a sampled step runs the model once more."""
        self._is_busy = False
        self._readings: deque[tuple[int, Reading]] = deque()
        self._warned: set[str] = set()
        self._is_first, self._was_called = step == 0, False
        reason = say("monitor-graph")
        before: Any = torch.compiler.disable(self._before, reason=reason)
        after: Any = torch.compiler.disable(self._after, reason=reason)
        # With always_call an exception of the forward ends the watch too.
        self._hooks = [
            model.register_forward_pre_hook(_Hook(before), with_kwargs=True),
            model.register_forward_hook(_Hook(after), always_call=True),
        ]

    def __repr__(self) -> str:
        return f"Monitor(every={self.every}, step={self.step}, latest={self.latest!r})"

    def begins(self, step: int) -> bool:
        """Set the number of the next step, for a loop that counts its steps. Returns whether the step is measured."""
        self.step, self._forwards = step - 1, 0
        self._is_first = step == 1
        return bool(self._hooks) and (step == 1 or step % self.every == 0)

    # --- hooks -----------------------------------------------------------------------------------------------

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Count a forward of the training; open a watch if its step is sampled."""
        if self._is_busy or module is not self._model:
            return
        if self._watch is not None:  # a compiled forward raised, and did not call the hook
            self._end(failed=True)
        if not module.training or not torch.is_grad_enabled() or in_backward():
            return
        self._was_called = True
        is_new_step = self._forwards % self.accumulate == 0
        self._forwards += 1
        self._deliver(_LATE - 1)
        if is_new_step:
            self.step += 1
            if self._is_first or self.step % self.every == 0:
                self._is_first = False
                self._arguments = args, kwargs
                self._begin()

    def _after(self, module: nn.Module, args: Any, out: Any) -> None:
        """End the watch of this forward."""
        if self._watch is not None and module is self._model and not self._is_busy:
            self._end(failed=out is None)

    def _begin(self) -> None:
        """Watch the forward that begins. It records nothing where compiled code hides the attention."""
        is_distance_due = abs(self.step - self._distance_step) >= DISTANCE_EVERY  # a loop may set an earlier step
        self._see = SEE if is_distance_due else SEE_WITHOUT_DISTANCE
        self._distance_step = self.step if is_distance_due else self._distance_step
        layers = [] if self._reruns else self._layers
        self._watch = watch(self._watched, see=self._see, layers=layers, budget=_NO_LIMIT)
        self._trace = self._watch.__enter__()

    def _end(self, failed: bool) -> None:
        """Close the watch and reduce its Trace. Errors become a warning: the training continues."""
        watched, trace, self._is_busy = self._watch, self._trace, True
        self._watch = self._trace = None
        assert watched is not None
        assert trace is not None
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always")
                watched.__exit__(None, None, None)
                if failed:
                    return
                if not len(trace) and "torch._dynamo" in sys.modules and not _is_sharded(self._watched):
                    notes.clear()
                    trace = self._rerun()
            self._add(trace, [str(note.message) for note in notes])
        except Exception as error:
            self._warn("error", say("monitor-error", reason=error))
            self.close()
        finally:
            self._arguments, self._is_busy = ((), {}), False

    def _rerun(self) -> Trace:
        """Run the forward once more, uncompiled, on the same inputs."""
        args, kwargs = self._arguments
        again = watch(self._watched, see=self._see, layers=self._layers, budget=_NO_LIMIT)
        with _unchanged(self._watched), torch.no_grad(), uncompiled(), again as trace:
            self._watched(*args, **kwargs)
        self._reruns = len(trace) > 0
        return trace

    def _add(self, trace: Trace, notes: list[str]) -> None:
        if not len(trace):
            self._warn("nothing", say("monitor-nothing", reason=notes[0] if notes else ""))
            self.close()
            return
        for note in notes:
            self._warn(note, note)
        reading = measured(trace)
        self._readings.append((self.step, reading))
        self._deliver(_LATE if reading.arrived else 0)

    # --- numbers ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Log what has not been logged yet; waits for the GPU."""
        self._deliver(0)

    def _deliver(self, most_left: int) -> None:
        while len(self._readings) > most_left:
            step, reading = self._readings.popleft()
            self.latest = reading.health()
            for kind, text in warnings_of(self.latest, self._floor, self._limit).items():
                self._warn(kind, say("monitor-step", step=step, text=text))
            if self._log is not None:
                self._log(self.latest.metrics(self.heads), step)

    def _warn(self, kind: str, text: str) -> None:
        """Warn once of each kind of problem."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, stacklevel=2)

    # --- the end ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Log what is left, and remove the hooks."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.flush()

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
        if not self._was_called and raised is None:
            self._warn("uncalled", say("monitor-uncalled", found=type(self._model).__name__))


class _Hook:
    """A hook of this process alone: a copy of the model, or one that is saved, has a hook that does nothing."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> None:
        self._function(*args)

    def __reduce__(self) -> tuple[type["_NoHook"], tuple[()]]:
        return _NoHook, ()


class _NoHook:
    """What a `_Hook` is in a copy."""

    def __call__(self, *args: Any) -> None:
        """Do nothing."""


def _logger(log: Any) -> Log | None:
    """The function that receives the numbers."""
    if hasattr(log, "add_scalar"):

        def add_scalars(metrics: Mapping[str, float], step: int) -> None:
            for name, value in metrics.items():
                log.add_scalar(name, value, step)

        return add_scalars
    if isinstance(log, Logger):  # its `log` takes a level and a text
        raise ArgumentError("monitor-log", found="logging.Logger")
    if hasattr(log, "log"):
        return lambda metrics, step: log.log(metrics, step=step)
    if log is not None and not callable(log):
        raise ArgumentError("monitor-log", found=type(log).__name__)
    found: Log | None = log
    return found


def _unwrapped(model: nn.Module) -> nn.Module:
    """The model inside torch.compile and DistributedDataParallel, so that its modules keep their names."""
    while True:
        inner = model.module if isinstance(model, DistributedDataParallel) else getattr(model, "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _is_sharded(model: nn.Module) -> bool:
    """Whether a forward of the model communicates (FSDP, tensor parallel): one process alone must not run it."""
    if "torch.distributed.tensor" in sys.modules:
        from torch.distributed.tensor import DTensor

        if any(isinstance(weight, DTensor) for weight in model.parameters()):
            return True
    return any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())


@contextmanager
def _unchanged(model: nn.Module) -> Iterator[None]:
    """Restore random states and buffers after the block."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    devices = list({weight.device for weight in model.parameters() if weight.is_cuda})
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
