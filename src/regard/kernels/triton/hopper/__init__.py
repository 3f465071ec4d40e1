"""Forward and second passes for Hopper GPUs with warp specialisation, in Gluon, one level below Triton."""

from functools import cache

import torch
import triton

VERSIONS = (3, 6), (3, 9)
"""The first and the last Triton version whose Gluon was tested; its names still change between versions."""


@cache
def is_available(device: torch.device) -> bool:
    """Whether the device is a Hopper GPU and the installed Triton is supported."""
    if device.type != "cuda" or torch.version.hip or torch.cuda.get_device_capability(device) != (9, 0):
        return False
    major, minor = triton.__version__.split(".")[:2]
    return VERSIONS[0] <= (int(major), int(minor)) <= VERSIONS[1]
