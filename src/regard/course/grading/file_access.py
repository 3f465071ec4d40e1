"""Landlock: which files the kernel lets a learner's program read and write, whoever asks, native code included.

It may read what Python and its libraries need, without the folders that hold the answers, and read and write its own
folder. Read by the learner's process: standard library only, and nothing of ours.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterator, Sequence

# The same numbers on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RUN, _WRITE, _READ, _LIST, _CUT = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_MAKE = sum(1 << bit for bit in range(4, 13))
"""Removing and making files, folders, links …"""
_LATER = {2: 1 << 13, 3: _CUT, 5: 1 << 15}
"""From later versions on: renaming across folders, cutting files, steering devices."""
_NETWORK, _OUTSIDE = 1 << 0 | 1 << 1, 1 << 0 | 1 << 1
"""From version 4 on: binding and connecting. From 6 on: abstract sockets of, and signals to, processes outside."""

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/nix", "/gnu")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def stay_below(libc: ctypes.CDLL, home: str, hidden: Sequence[str], paths: Sequence[str]) -> bool:
    """Let only `home` be written, and only that, `paths` and the system's libraries be read, never what is hidden.

    False where the kernel has no Landlock.
    """
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    handled = _RUN | _WRITE | _READ | _LIST | _MAKE | sum(bit for since, bit in _LATER.items() if version >= since)
    asked = struct.pack("=QQQ", handled, _NETWORK, _OUTSIDE)[: 8 * (1 + (version >= 4) + (version >= 6))]
    ruleset = libc.syscall(_CREATE_RULESET, asked, len(asked), 0)
    if ruleset < 0:
        return False
    _allow(libc, ruleset, home, handled & ~_RUN)
    for device in _DEVICES:
        _allow(libc, ruleset, device, handled & (_READ | _WRITE | _CUT))
    for path, listed_only in _readable((*_SYSTEM, *paths), tuple(hidden)):
        _allow(libc, ruleset, path, _LIST if listed_only else _READ | _LIST)
    libc.prctl(38, 1, 0, 0, 0)  # no new privileges, without which the kernel lets nobody refuse things to itself
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return done


def libraries() -> list[str]:
    """Where this Python and what it has loaded come from."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            found += [os.path.dirname(line[line.index("/") :].rstrip("\n")) for line in file if ".so" in line]
    except (OSError, ValueError):
        pass
    return [path for path in dict.fromkeys(found) if path.startswith("/") and path != "/"]


def _readable(paths: Sequence[str], hidden: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """What to allow so that all of `paths` can be read but nothing of `hidden`: a folder above something hidden is
    allowed piece by piece, and its own names may be listed. Links are left out: what they lead to is allowed or not
    by where it is."""
    waiting, seen = [os.path.realpath(path) for path in paths], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen or any(_is_below(path, folder) for folder in hidden):
            continue
        seen.add(path)
        above = any(_is_below(folder, path) for folder in hidden)
        yield path, above
        if above:
            try:
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if not entry.is_symlink()]
            except OSError:
                continue


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """A rule for a path; what is no folder has no names to list, and what is not there needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= ~(_LIST | _MAKE | 1 << 13)
    libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Root without namespaces keeps its number and loses its powers: to write over any file, to load modules …"""
    header = struct.pack("=Ii", 0x20080522, 0)
    libc.capset(header, bytes(24))
