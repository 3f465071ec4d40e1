"""How much memory there is, asked before a request that may not fit."""

import os
import sys

from regard.errors import TooLargeError


def available_bytes() -> int | None:
    """Free memory of this machine in bytes; None where the system does not tell."""
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


def free_beside(x: object) -> int | None:
    """Free memory in bytes of the GPU that the tensor `x` is on; None for whatever is on none.

    What PyTorch has taken and nothing lies in counts as free: that is what it would give first.
    """
    device = getattr(x, "device", None)
    if getattr(device, "type", None) != "cuda":
        return None
    cuda = sys.modules["torch"].cuda
    held: int = cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return held + int(cuda.mem_get_info(device)[0])


def spell(count: float, decimal: bool = False) -> str:
    """A number of bytes as people write it: by 1,024, or by 1,000 for those who count so.

    >>> spell(3 * 2**30), spell(1500), spell(1500, decimal=True)
    ('3.0 GiB', '1.5 KiB', '1.5 kB')
    """
    step, units = (1000, ("B", "kB", "MB", "GB", "TB")) if decimal else (1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    for unit in units:
        if count < step - 0.05 or unit == units[-1]:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= step
    raise AssertionError("unreachable")


def require(count: int, *, key: str, free: int | None = None, **values: object) -> None:
    """Raise TooLargeError with the sentence `key` when `count` bytes are more than `free`, or than this machine has."""
    free = available_bytes() if free is None else free
    if free is not None and count > free:
        raise TooLargeError(key, need=spell(count), free=spell(free), **values)
