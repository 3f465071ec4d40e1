"""Free memory, and the check before a request that may not fit."""

import os
import sys

from regard.errors import TooLargeError


def available_bytes() -> int | None:
    """Free memory of this machine in bytes; None where it is unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def free_gpu_bytes(x: object) -> int | None:
    """Free memory in bytes of the GPU that the tensor `x` is on; None for anything else.

    Memory that PyTorch has reserved and does not use counts as free, because PyTorch allocates from it first.
    """
    device = getattr(x, "device", None)
    if getattr(device, "type", None) != "cuda":
        return None
    cuda = sys.modules["torch"].cuda
    held: int = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return held + int(cuda.mem_get_info(device)[0])


def is_surely_free(x: object, count: int) -> bool:
    """Whether the GPU of the tensor `x` has this many bytes free besides what PyTorch has reserved.

    Asking how much PyTorch has reserved takes twenty times as long.
    """
    device = getattr(x, "device", None)
    return getattr(device, "type", None) == "cuda" and int(sys.modules["torch"].cuda.mem_get_info(device)[0]) >= count


def format_bytes(count: float, decimal: bool = False) -> str:
    """A number of bytes as text, in units of 1,024, or of 1,000 with `decimal`.

    >>> format_bytes(3 * 2**30), format_bytes(1500), format_bytes(1500, decimal=True)
    ('3.0 GiB', '1.5 KiB', '1.5 kB')
    """
    step, units = (1000, ("B", "kB", "MB", "GB", "TB")) if decimal else (1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    for unit in units:
        if count < step - 0.05 or unit == units[-1]:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= step
    raise AssertionError("unreachable")


def require_bytes(count: int, *, key: str, free: int | None = None, **values: object) -> None:
    """Raise TooLargeError with the message `key` if `count` bytes exceed `free`, or the free memory of this machine."""
    free = available_bytes() if free is None else free
    if free is not None and count > free:
        raise TooLargeError(key, need=format_bytes(count), free=format_bytes(free), **values)
