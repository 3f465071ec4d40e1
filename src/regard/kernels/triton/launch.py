"""How a kernel is started: on the GPU that its tensors are on, with fewer stages where that has no room for all."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from regard.kernels.triton.tile_sizes import Blocks


class Inputs(NamedTuple):
    """What a kernel is given: its first arguments, and what is known when it is compiled.

    No tuple of the arguments holds another one: Triton 3.6 loses a number 1 in there.
    """

    arguments: tuple[Any, ...]
    constants: dict[str, Any]


FUSED = {"enable_fp_fusion": True}
"""s · scale − shift is one operation: from Triton 3.10 on only where it is said."""


def launch(kernel: Any, programs: int, blocks: Blocks, beside: Tensor, *arguments: Any, **constants: Any) -> None:
    """So many programs, with the warps and stages of `blocks`, on the device of the tensor `beside`."""
    with on_device(beside):
        for stages in range(blocks.stages, 0, -1):
            try:
                kernel[(programs,)](*arguments, **constants, num_warps=blocks.warps, num_stages=stages, **FUSED)
            except OutOfResources:
                if stages == 1:
                    raise
            else:
                return


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Where kernels are launched: Triton takes the current GPU, not that of its arguments."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
