"""The processes of a run, as `torchrun` starts them: rank, device, barriers, sums; and signals that request a stop.

Uses PyTorch's process groups, gloo on the CPU and NCCL on GPUs. A single process needs none of them. The first signal
requests a stop after the current step, the second raises KeyboardInterrupt.
"""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from regard.errors import ArgumentError, MissingDeviceError, RegardError, RunError
from regard.files.output import reason_of
from regard.messages import say

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1") if hasattr(signal, name)]
"""SIGHUP: the terminal was closed. SIGUSR1: clusters send it shortly before the time limit. Windows lacks both."""


class StopRequest:
    """A request to stop, set by a signal and read by the training loop."""

    def __init__(self) -> None:
        self.set_at: float | None = None
        """The time of the request by the monotonic clock."""

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self.set_at is not None

    def set(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Request a stop after the current step. A second request raises KeyboardInterrupt."""
        if self.is_set:
            raise KeyboardInterrupt
        self.set_at = time.monotonic()


@contextmanager
def handle_signals() -> Iterator[StopRequest]:
    """Turn signals into a stop request inside the block; restore the handlers after it. No effect in a thread."""
    request = StopRequest()
    before = {}
    try:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and background shells ignore some signals
                before[number] = signal.signal(number, request.set)
    except ValueError:  # not the main thread
        pass
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: the handler was not set from Python


SECONDS = 20.0
"""Timeout for the other processes within a step. A longer one would report a lost process too late."""
LONG_TIMEOUT = 1800.0
"""Timeout while one process may be busy: reading, saving, compiling."""
STOPPING_SECONDS = 60.0
"""Timeout after a stop request: a process that has not reached the barrier by then is lost."""
MOST = 2**20
"""The largest number of processes."""
_LONGEST_PAUSE = 0.05


@dataclass(frozen=True)
class Ranks:
    """This process among `world`, on its device.

    long_group         the process group with a long timeout
    first_short_group  the group in which the others have a long timeout and the first process a short one
    request            the stop request of this process, while signals are handled
    """

    rank: int
    world: int
    device: torch.device
    long_group: Any = None
    first_short_group: Any = None
    request: StopRequest | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and reports."""
        return self.rank == 0

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.world > 1:
            dist.all_reduce(values)
        return values

    def wait(self) -> None:
        """Wait until all processes arrive, with the long timeout."""
        if self.world > 1:
            self._barrier(self.long_group)

    def wait_for_first(self) -> None:
        """Wait until the first process has finished its own work. It waits for the others only briefly."""
        if self.world > 1:
            self._barrier(self.first_short_group)

    def _barrier(self, group: Any) -> None:
        """Poll with short pauses: during one long gloo call, Python would handle no signal."""
        arriving = dist.barrier(group=group, async_op=True)
        pause = 0.001
        while not arriving.is_completed():
            since = None if self.request is None else self.request.set_at
            if since is not None and time.monotonic() - since > STOPPING_SECONDS:
                reason = say("rank-not-stopping", seconds=STOPPING_SECONDS)
                raise RunError("rank-lost", rank=self.rank, world=self.world, reason=reason)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        arriving.wait()  # raises the error, if any

    def distributed(self, module: nn.Module) -> nn.Module:
        """The module, with its gradients averaged over all processes."""
        return module if self.world == 1 else DistributedDataParallel(module)


@contextmanager
def joined(device: str | None = None, seconds: float | None = None) -> Iterator[Ranks]:
    """Join the process group that `torchrun` started; without `torchrun`, a single process.

    Raises RunError if a process is lost, ArgumentError if the environment variables are not those of `torchrun`.

    device    "cpu", "cuda", "cuda:1"; None for a GPU if there is one
    seconds   the timeout for the other processes within a step
    """
    world = _environment_integer("WORLD_SIZE", 1, 1, MOST)
    rank, local = 0, 0
    if world > 1:
        rank, local = (_environment_integer(name, 0, 0, world - 1) for name in ("RANK", "LOCAL_RANK"))
    chosen = chosen_device(device, local)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if world == 1:
        yield Ranks(0, 1, chosen)
        return
    try:
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        timeout = timedelta(seconds=seconds or SECONDS)
        dist.init_process_group(backend, store=_rendezvous_store(timeout), rank=rank, world_size=world, timeout=timeout)
        long = timedelta(seconds=LONG_TIMEOUT)
        long_group = dist.new_group(backend="gloo", timeout=long)
        # Each process has its own timeout.
        first_short_group = dist.new_group(backend="gloo", timeout=timeout if rank == 0 else long)
        yield Ranks(rank, world, chosen, long_group, first_short_group)
    except (dist.DistError, RuntimeError) as error:
        if isinstance(error, RegardError | torch.OutOfMemoryError) or not _is_connection_error(error):
            raise
        raise RunError("rank-lost", rank=rank, world=world, reason=_reason(error)) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _environment_integer(name: str, default: int, least: int, most: int) -> int:
    """An integer from an environment variable that `torchrun` sets."""
    value = os.environ.get(name, str(default))
    if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
        raise ArgumentError("rank-variable", reason=say("rank-variable-value", name=name, value=value))
    return int(value)


def _rendezvous_store(timeout: timedelta) -> Store:
    """The store in which the processes exchange their addresses, with a new prefix for each restart by `torchrun`.

    `torchrun` keeps one store through all restarts; without a prefix the address of a lost process would be reused.
    """
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise ArgumentError("rank-variable", reason=say("rank-variable-absent", name=name))
    _environment_integer("MASTER_PORT", 0, 0, 65535)
    store, _, _ = next(rendezvous("env://", timeout=timeout))
    # With several machines, one that lost no process does not count the restart.
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if alone else "all", store)


def chosen_device(name: str | None, local: int = 0) -> torch.device:
    """The device with this name; None for a GPU if there is one. Process `local` of a machine gets GPU `local`.

    Raises ArgumentError for an invalid name, MissingDeviceError for a GPU that does not exist.
    """
    has_gpu = torch.cuda.is_available()
    if name is None:
        name = "cuda" if has_gpu else "cpu"
    if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", name):
        raise ArgumentError("unknown-choice", name="device", value=name, choices="cpu, cuda, cuda:1")
    device = torch.device(name)
    if device.type == "cpu":
        return device
    if device.index is None:
        device = torch.device("cuda", local)
    count = torch.cuda.device_count() if has_gpu else 0
    if device.index >= count:
        raise MissingDeviceError("device-missing", device=str(device), count=count)
    return device


def _reason(error: Exception) -> str:
    """The error of the connection without gloo's source location and its advice to programmers."""
    return re.sub(r"\[/[^]]*\] *", "", reason_of(error)).partition(". This is")[0]


def _is_connection_error(error: Exception) -> bool:
    """Whether an error is about the connection: gloo raises plain RuntimeErrors."""
    words = ("gloo", "nccl", "connection", "timed out", "timeout", "peer", "socket", "rendezvous", "tcpstore")
    return isinstance(error, dist.DistError) or any(word in str(error).lower() for word in words)
