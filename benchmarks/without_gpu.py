"""Compilation of the Hopper kernels on a machine without a GPU: launches are compiled, not run."""

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
from regard.kernels.triton.hopper.second_pass import second_pass_kernel

PTX_VERSION = 86
"""The PTX version that all assemblers of Triton 3.6 and later support, times ten."""
PROCESSORS = 132
"""Of an H200."""


class Gpu:
    """The driver functions that Triton needs to compile without running."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class Kernel:
    """A stand-in for a kernel: launches are passed to `on_launch`."""

    def __init__(self, on_launch: Callable[..., object]) -> None:
        self.on_launch = on_launch

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        return lambda *arguments, **constants: self.on_launch(grid, *arguments, **constants)


@contextmanager
def compile_only() -> Iterator[list[Any]]:
    """Compile the kernels launched here to PTX, without the assembler, which may be missing, and add them to the list.
    From then on Triton's active driver is this fake GPU.
    """
    found: list[Any] = []

    def compiling(kernel: Any) -> Kernel:
        return Kernel(
            lambda grid, *x, **constants: found.append(
                kernel.warmup(*x, grid=grid, ptx_version=PTX_VERSION, **constants)
            )
        )

    driver.set_active(Gpu())
    properties = SimpleNamespace(multi_processor_count=PROCESSORS)
    with (
        patch.object(torch.cuda, "get_device_properties", lambda device: properties),
        patch.object(launch, "forward_kernel", compiling(forward_kernel)),
        patch.object(launch, "second_pass_kernel", compiling(second_pass_kernel)),
        patch.object(CUDABackend, "make_cubin", lambda *_: b""),
        # Triton kernels, not Hopper's:
        patch.object(launch, "padded_shifts", lambda lse, rows: lse),
        patch.object(launch, "sum_strips", lambda *_: None),
    ):
        yield found
