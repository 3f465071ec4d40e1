"""How much memory there is, asked before a request that may not fit."""

import os

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


def spell(count: float) -> str:
    """A number of bytes as people write it.

    >>> spell(3 * 2**30), spell(1500)
    ('3.0 GiB', '1.5 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1023.95 or unit == "TiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def require(count: int, *, key: str, free: int | None = None, **values: object) -> None:
    """Raise TooLargeError with the sentence `key` when `count` bytes are more than there are."""
    free = available_bytes() if free is None else free
    if free is not None and count > free:
        raise TooLargeError(key, need=spell(count), free=spell(free), **values)
