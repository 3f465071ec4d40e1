"""One process or several, as `torchrun` starts them: who we are, and what all must agree on.

PyTorch's own process groups, gloo on the CPU and NCCL on GPUs. A single process pays for nothing here.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
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
from regard.training.signals import StopRequest

SECONDS = 20.0
"""How long the others are waited for within a step. Longer, and the loss of one is noticed too late."""
PATIENT_SECONDS = 1800.0
"""And while one of them may be at work: reading, saving, compiling."""
STOPPING_SECONDS = 60.0
"""And once this process has been asked to stop: whoever does not come to a barrier by then will not come."""
MOST = 2**20
"""Processes; more than anybody has."""
_LONGEST_PAUSE = 0.05


@dataclass(frozen=True)
class Ranks:
    """This process among `world`, on its device.

    patient     the group in which all wait long for all
    following   the one in which all wait long for the first process, and it not for them
    request     whether this process was asked to stop, while someone listens to signals
    """

    rank: int
    world: int
    device: torch.device
    patient: Any = None
    following: Any = None
    request: StopRequest | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def added(self, values: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.world > 1:
            dist.all_reduce(values)
        return values

    def wait(self) -> None:
        """Until all are here, however long each had to work."""
        if self.world > 1:
            self._barrier(self.patient)

    def wait_for_first(self) -> None:
        """Until the first process has done what it alone does. It finds the others waiting, or gives them up soon."""
        if self.world > 1:
            self._barrier(self.following)

    def _barrier(self, group: Any) -> None:
        """Wait in short pauses: inside one long call of gloo's, Python would answer no signal."""
        arriving = dist.barrier(group=group, async_op=True)
        pause = 0.001
        while not arriving.is_completed():
            asked = None if self.request is None else self.request.asked_at
            if asked is not None and time.monotonic() - asked > STOPPING_SECONDS:
                reason = say("rank-not-stopping", seconds=STOPPING_SECONDS)
                raise RunError("rank-lost", rank=self.rank, world=self.world, reason=reason)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        arriving.wait()  # raises what went wrong

    def together(self, module: nn.Module) -> nn.Module:
        """The module with its gradients averaged over all processes."""
        return module if self.world == 1 else DistributedDataParallel(module)


@contextmanager
def joined(device: str | None = None, seconds: float | None = None) -> Iterator[Ranks]:
    """Join the others that `torchrun` started; alone where it did not.

    Raises RunError where one of them is lost, ArgumentError where the environment is not one that it makes.

    device    "cpu", "cuda", "cuda:1"; None for the GPU where there is one
    seconds   how long the others are waited for within a step
    """
    world = _told("WORLD_SIZE", 1, 1, MOST)
    rank, local = (_told("RANK", 0, 0, world - 1), _told("LOCAL_RANK", 0, 0, world - 1)) if world > 1 else (0, 0)
    chosen = chosen_device(device, local)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if world == 1:
        yield Ranks(0, 1, chosen)
        return
    try:
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        timeout = timedelta(seconds=seconds or SECONDS)
        dist.init_process_group(backend, store=_meeting_place(timeout), rank=rank, world_size=world, timeout=timeout)
        long = timedelta(seconds=PATIENT_SECONDS)
        patient = dist.new_group(backend="gloo", timeout=long)
        following = dist.new_group(backend="gloo", timeout=timeout if rank == 0 else long)  # each keeps its own time
        yield Ranks(rank, world, chosen, patient, following)
    except (dist.DistError, RuntimeError) as error:
        if isinstance(error, RegardError | torch.OutOfMemoryError) or not _is_about_others(error):
            raise
        raise RunError("rank-lost", rank=rank, world=world, reason=_reason(error)) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _told(name: str, usual: int, least: int, most: int) -> int:
    """A number that `torchrun` tells by a variable of the environment."""
    value = os.environ.get(name, str(usual))
    if not re.fullmatch("[0-9]{1,9}", value) or not least <= int(value) <= most:
        raise ArgumentError("rank-variable", reason=say("rank-variable-value", name=name, value=value))
    return int(value)


def _meeting_place(timeout: timedelta) -> Store:
    """Where the processes tell each other their addresses: a place for each time that `torchrun` starts them.

    It keeps the one store through all its restarts, and an address of the process that was lost leads nowhere.
    """
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise ArgumentError("rank-variable", reason=say("rank-variable-absent", name=name))
    _told("MASTER_PORT", 0, 0, 65535)
    store, _, _ = next(rendezvous("env://", timeout=timeout))
    # Of several machines, those where nothing was lost do not count the restart.
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if alone else "all", store)


def chosen_device(name: str | None, local: int = 0) -> torch.device:
    """The device of that name, None for a GPU where there is one; of a machine's processes each has its own GPU.

    ArgumentError for a name that is none, MissingDeviceError for a GPU that is not there.
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
    """What is wrong with the connection, without the place in gloo's source and its advice to programmers."""
    return re.sub(r"\[/[^]]*\] *", "", reason_of(error)).partition(". This is")[0]


def _is_about_others(error: Exception) -> bool:
    """Whether an error is about the connection: gloo raises plain RuntimeErrors, with the place in its source."""
    words = ("gloo", "nccl", "connection", "timed out", "timeout", "peer", "socket", "rendezvous", "tcpstore")
    return isinstance(error, dist.DistError) or any(word in str(error).lower() for word in words)
