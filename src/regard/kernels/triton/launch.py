"""Launch of a Triton kernel: on the GPU of its tensors, with fewer pipeline stages where shared memory is too small."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from regard.kernels.triton.support import Blocks


class KernelArguments(NamedTuple):
    """A kernel's first arguments and its compile-time constants.

    No tuple in the arguments contains another tuple: Triton 3.6 loses a number 1 inside.
    """

    arguments: tuple[Any, ...]
    constants: dict[str, Any]


FP_FUSION = {"enable_fp_fusion": True}
"""Allow s · scale − shift as one operation: since Triton 3.10 this must be requested."""


def launch(kernel: Any, programs: int, blocks: Blocks, like: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch `programs` programs with the warps and stages of `blocks`, on the device of the tensor `like`."""
    with on_device(like):
        for stages in range(blocks.stages, 0, -1):
            try:
                kernel[(programs,)](*arguments, **constants, num_warps=blocks.warps, num_stages=stages, **FP_FUSION)
            except OutOfResources:
                if stages == 1:
                    raise
            else:
                return


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """The device context for a launch: Triton uses the current GPU, not that of its arguments."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
