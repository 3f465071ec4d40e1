"""Forward and second passes on Hopper GPUs, where warps have different jobs: in Gluon, one level below Triton."""

from functools import cache

import torch
import triton

VERSIONS = (3, 6), (3, 9)
"""The first and the last Triton whose Gluon this was compiled with; it is still being renamed from one to the next."""


@cache
def is_at_hand(device: torch.device) -> bool:
    """Whether there are such a GPU and such a Triton."""
    if device.type != "cuda" or torch.version.hip or torch.cuda.get_device_capability(device) != (9, 0):
        return False
    major, minor = triton.__version__.split(".")[:2]
    return VERSIONS[0] <= (int(major), int(minor)) <= VERSIONS[1]
