"""The kernels for Hopper GPUs compiled where there is none: what would be launched is handed over instead."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime import driver

from regard.kernels.triton.hopper import launch
from regard.kernels.triton.hopper.forward import forward_kernel
from regard.kernels.triton.hopper.second_pass import second_kernel

LANGUAGE = 86
"""The version of the GPU's language that all assemblers of Triton 3.6 and later know, times ten."""
PROCESSORS = 132
"""Of an H200."""


class Gpu:
    """What Triton asks of a GPU when it compiles and does not run."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class Kernel:
    """In the place of a kernel: what is launched goes to `take`."""

    def __init__(self, take: Callable[..., object]) -> None:
        self.take = take

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        return lambda *arguments, **constants: self.take(grid, *arguments, **constants)


@contextmanager
def compiled_instead() -> Iterator[list[Any]]:
    """Kernels that are launched here are compiled, and found in this list: to the GPU's language, not by its assembler,
    which may not be there. From then on Triton takes the device for such a GPU.
    """
    found: list[Any] = []

    def compiling(kernel: Any) -> Kernel:
        return Kernel(
            lambda grid, *x, **constants: found.append(kernel.warmup(*x, grid=grid, ptx_version=LANGUAGE, **constants))
        )

    driver.set_active(Gpu())
    properties = SimpleNamespace(multi_processor_count=PROCESSORS)
    with (
        patch.object(torch.cuda, "get_device_properties", lambda device: properties),
        patch.object(launch, "forward_kernel", compiling(forward_kernel)),
        patch.object(launch, "second_kernel", compiling(second_kernel)),
        patch.object(CUDABackend, "make_cubin", lambda *_: b""),
        # In Triton, for every GPU:
        patch.object(launch, "in_whole_tiles", lambda lse, rows: lse),
        patch.object(launch, "join", lambda *_: None),
    ):
        yield found
