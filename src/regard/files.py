"""A file written whole or not at all, under a name that fits; one that is locked; what the system said if not."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from regard.errors import ArgumentError, FileError
from regard.words import Listed

TRACE = ".safetensors"
PICTURES = (".png", ".svg", ".pdf")
"""Endings of the pictures that matplotlib writes for us."""
PAGES = (".html", ".htm")

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> None:
        """Lock an open file until it is closed, however that comes; BlockingIOError where somebody else has it."""
        # What is locked cannot be read there, so the byte locked is one far behind whatever the file holds.
        os.lseek(descriptor, 2**30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def try_lock(descriptor: int) -> None:
        """Lock an open file until it is closed, however that comes; BlockingIOError where somebody else has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_aside(target: Path, write: Callable[[Path], object], *also: type[Exception]) -> None:
    """Let `write` make a new file beside the target, then put it in its place: a stopped write leaves the old one.

    Whoever writes, the file may be read by whom the umask says. FileError where the target is a folder, the system
    refuses, or one of the exceptions `also` comes.
    """
    if target.is_dir():
        raise FileError("file-is-folder", path=str(target))
    aside = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    refusals: tuple[type[Exception], ...] = (OSError, *also)
    try:
        mode = _mode_of_new(aside)
        write(aside)
        aside.chmod(mode)
        os.replace(aside, target)
    except refusals as error:
        raise FileError("file-unwritable", path=str(target), reason=reason_of(error)) from error
    finally:
        aside.unlink(missing_ok=True)


def _mode_of_new(path: Path) -> int:
    """What a new file there may be by the umask, which cannot be read without being changed, and for all threads."""
    path.touch(exist_ok=False)
    mode = path.stat().st_mode & 0o777
    path.unlink()
    return mode


def ending_of(target: Path, *endings: str) -> str:
    """Which of the endings the name has; the first where it has none. ArgumentError where it promises another file.

    >>> ending_of(Path("a.SVG"), ".png", ".svg"), ending_of(Path("a"), ".png", ".svg")
    ('.svg', '.png')
    """
    found = target.suffix.lower() or endings[0]
    if found not in endings:
        better = target.with_suffix(endings[0])
        raise ArgumentError("file-ending", path=str(target), endings=Listed(endings), better=str(better))
    return found


def check_place(target: Path) -> None:
    """FileError where there is no folder for the file; asked first by whoever has much to do before it is written."""
    if not target.parent.is_dir():
        raise FileError("file-no-folder", path=str(target), folder=str(target.parent))


def reason_of(error: Exception) -> str:
    """The first line of what the system said, without the path that our own sentence names."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]
