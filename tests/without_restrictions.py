"""Simulates systems without namespaces or Landlock, for this process and its children, by a seccomp filter.

`python -m without_restrictions LAYERS COMMAND …` runs a command; LAYERS are some of "namespaces" and "landlock", with
commas. The system calls fail exactly as on a system without these features.
"""

import ctypes
import os
import platform
import struct
import sys

CALLS: dict[str, dict[str, tuple[int, ...]]] = {
    "namespaces": {"x86_64": (272,), "aarch64": (97,)},
    "landlock": {"x86_64": (444, 445, 446), "aarch64": (444, 445, 446)},
}
REFUSED = {"namespaces": 0x00050001, "landlock": 0x00050026}
"""EPERM, as in a container; ENOSYS, as on an old kernel."""


def remove_layers(layers: list[str]) -> None:
    """Disable layers for this process and its children permanently."""
    steps = [(0x20, 0, 0, 0)]
    for layer in layers:
        for number in CALLS[layer][platform.machine()]:
            steps += [(0x15, 0, 1, number), (0x06, 0, 0, REFUSED[layer])]
    packed = b"".join(struct.pack("=HBBI", *step) for step in [*steps, (0x06, 0, 0, 0x7FFF0000)])
    kept = ctypes.create_string_buffer(packed, len(packed))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    program = struct.pack("@HxxxxxxP", len(packed) // 8, ctypes.addressof(kept))
    if libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError("no seccomp here")


if __name__ == "__main__":
    remove_layers([layer for layer in sys.argv[1].split(",") if layer])
    os.execv(sys.argv[2], sys.argv[2:])
