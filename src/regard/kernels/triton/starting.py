"""How a kernel is started: on the GPU that its tensors are on, with fewer stages where that has no room for all."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from regard.kernels.triton.blocks import Blocks


def launch(kernel: Any, programs: int, blocks: Blocks, beside: Tensor, *arguments: Any, **constants: Any) -> None:
    """So many programs, with the warps and stages of `blocks`, on the device of the tensor `beside`."""
    with on_device(beside):
        for stages in range(blocks.stages, 0, -1):
            try:
                kernel[(programs,)](*arguments, **constants, num_warps=blocks.warps, num_stages=stages)
            except OutOfResources:
                if stages == 1:
                    raise
            else:
                return


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Where kernels are launched: Triton takes the current GPU, not that of its arguments."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
