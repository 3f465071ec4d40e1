"""A file written whole or not at all, under a name that fits; one that is locked; what the system said if not."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.errors import ArgumentError, FileError, RegardError, TooLargeError
from regard.files.input import BINARY, open_descriptor, refuse_special
from regard.memory import spell
from regard.messages import Listed

TRACE = ".safetensors"
PICTURES = (".png", ".svg", ".pdf")
"""Endings of the pictures that matplotlib writes for us."""
PAGES = (".html", ".htm")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

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


def open_lock(path: Path) -> int:
    """A descriptor of the file that is locked, made where there is none; no link, and nothing but a regular file.

    Raises FileError, and TooLargeError where the disk is full.
    """
    try:
        return open_descriptor(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise refusal(error, path, 0) from error


# --- writing ---------------------------------------------------------------------------------------------


def write_output(target: Path, content: bytes) -> None:
    """Write a file that a person has named: a picture, a page, lines.

    A regular file, or a new one, is written as `write_aside` does. A pipe, a terminal and what else a person may name
    instead of a file, such as /dev/stdout, is written into and stays what it is. Raises as `write_aside`.
    """
    with _writing_to(target, len(content)):
        descriptor = _open_stream(target)
        if descriptor is None:
            _replace(target, lambda aside: aside.write_bytes(content))
        else:
            _write_into(descriptor, [content])


def write_aside(
    target: Path, write: Callable[[Path], object], *also: type[Exception], need: int, into_streams: bool = False
) -> None:
    """Let `write` make a new file beside the target, then put it in its place: a stopped write leaves the old one.

    need          bytes that will be written, for what is said where the disk is full
    into_streams  the target is one that a person has named, and may be a pipe or a terminal, as in `write_output`

    A link stays a link: what it leads to is written. A new file may be read by whom the umask says, one that was there
    by whom it could be. FileError where the target is a folder, a FIFO, a device or a socket, the system refuses, or
    one of the exceptions `also` comes; TooLargeError where the disk is full.
    """
    with _writing_to(target, need, *also):
        descriptor = _open_stream(target) if into_streams else None
        if descriptor is None:
            _replace(target, write)
        else:
            _write_into(descriptor, _pieces(write))


def write_new(target: Path, content: bytes) -> bool:
    """Write a file that is not there yet, whole or not at all; False where there is one, which is left as it is.

    FileError where what is there is no regular file; raises as `write_aside` otherwise.
    """
    with _writing_to(target, len(content)):
        if os.path.lexists(target):
            _check_regular(target)
            return False
        aside = _aside_of(target)
        try:
            mode = _make(aside)
            aside.write_bytes(content)
            aside.chmod(mode)
            try:
                os.link(aside, target)  # which, unlike a rename, fails where somebody else was quicker
            except FileExistsError:
                return False
            except OSError:  # a drive without hard links
                os.rename(aside, target)
        finally:
            _remove(aside)
    return True


@contextmanager
def _writing_to(target: Path, need: int, *also: type[Exception]) -> Iterator[None]:
    """What the system says while a file is written, in our words."""
    _check_name(target)
    refusals: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except RegardError:
        raise
    except refusals as error:
        raise refusal(error, target, need) from error


def _check_name(target: Path) -> None:
    if str(target) == "-":
        raise ArgumentError("file-is-dash")
    if "\0" in str(target):
        raise FileError("file-unwritable", path=str(target), reason="NUL")


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    """A new file in the place of the one that the target is, or leads to. Raises OSError and FileError."""
    place = real_place(target)
    before = place.stat() if place.exists() else None
    if before is not None and not os.access(place, os.W_OK):  # a rename would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    aside = _aside_of(place)
    try:
        mode = _make(aside)
        write(aside)
        if before is not None:
            mode = stat.S_IMODE(before.st_mode) & 0o777
            with suppress(OSError, AttributeError):  # of another owner: root writes, and may give it back
                os.chown(aside, before.st_uid, before.st_gid)
        aside.chmod(mode)
        os.replace(aside, place)
    finally:
        _remove(aside)


def real_place(target: Path) -> Path:
    """Where a regular file is or will be, links followed; FileError where something else is there."""
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if os.path.lexists(place):
        _check_regular(place)
    return place


def _check_regular(path: Path) -> None:
    try:
        refuse_special(path, path.stat().st_mode)
    except FileNotFoundError:  # a link to nothing
        raise FileError("file-unwritable", path=str(path), reason=os.strerror(errno.EEXIST)) from None


def _aside_of(place: Path) -> Path:
    return place.with_name(f".{place.name[:40]}.{os.urandom(4).hex()}")  # a name may have 255 bytes, no more


def _make(aside: Path) -> int:
    """An empty file that only its owner may read; what a new file there may be by the umask.

    The umask cannot be read without being changed, and for all threads.
    """
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
    aside.chmod(0o600)
    return mode


def _remove(aside: Path) -> None:
    with suppress(OSError):  # what stopped us is the news
        aside.unlink(missing_ok=True)


# --- pipes, terminals, devices ---------------------------------------------------------------------------


def _open_stream(target: Path) -> int | None:
    """A descriptor to write into where the target is no regular file; None where it is one, or nothing yet.

    Raises FileError and OSError.
    """
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if (ours := _our_stream(found)) is not None:
        return os.dup(ours)
    if stat.S_ISREG(found.st_mode):
        # One that /proc/self/fd leads to, and that has no name any more: it is nowhere to be put in place of.
        real = Path(os.path.realpath(target))
        lost = not real.exists() or not os.path.samestat(real.stat(), found)
        return os.open(target, os.O_WRONLY | os.O_TRUNC) if lost else None
    _refuse_devices(target, found)
    try:
        descriptor = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(found.st_mode):
            raise FileError("file-no-reader", path=str(target)) from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor


def _our_stream(found: os.stat_result) -> int | None:
    """The descriptor of our own stdout or stderr where it is that file.

    Also of a regular file: whoever has opened it for us goes on writing there, so that it is not put aside.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or none of the system's
            if os.path.samestat(os.fstat(stream.fileno()), found):
                stream.flush()
                return stream.fileno()
    return None


def _refuse_devices(target: Path, found: os.stat_result) -> None:
    """FileError where the target is no file, no pipe, and no device that keeps nothing or is our terminal.

    What other devices hold, or do when they are opened, is not ours to change.
    """
    known = []
    for name in ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty"):
        with suppress(OSError):
            known.append(os.stat(name).st_rdev)
    is_known = stat.S_ISCHR(found.st_mode) and found.st_rdev in known
    if not (is_known or stat.S_ISFIFO(found.st_mode)):
        refuse_special(target, found.st_mode)


def _pieces(write: Callable[[Path], object]) -> Iterator[bytes]:
    """What `write` puts in a file, a piece at a time."""
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        made = Path(folder, "output")
        write(made)
        with made.open("rb") as file:
            yield from iter(lambda: file.read(2**20), b"")


def _write_into(descriptor: int, pieces: Iterable[bytes]) -> None:
    """All of them; then the descriptor is closed."""
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


# --- when the system says no -----------------------------------------------------------------------------


def refusal(error: Exception, path: Path, need: int) -> RegardError:
    """What to say when `need` bytes could not be written: TooLargeError if the disk is full, else FileError."""
    if not is_out_of_space(error):
        return FileError("file-unwritable", path=str(path), reason=reason_of(error))
    return TooLargeError("disk-full", path=str(path), need=spell(need), free=_free(path), reason=reason_of(error))


def is_out_of_space(error: BaseException) -> bool:
    """Whether the disk, a quota or the limit on the size of a file has no room; libraries in Rust tell it in words."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(f"(os error {number})" in str(error) for number in _FULL)


def _free(path: Path) -> str:
    """The room on the disk of a file; none on what is no disk."""
    with suppress(OSError):
        if path.exists() and not path.is_file() and not path.is_dir():
            return spell(0)
        folder = next(one for one in (path, *path.parents) if one.is_dir())
        return spell(shutil.disk_usage(folder).free)
    return "?"


# --- names -----------------------------------------------------------------------------------------------


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
    """FileError where no file can be there; asked first by whoever has much to do before it is written."""
    _check_name(target)
    if not target.parent.is_dir():
        raise FileError("file-no-folder", path=str(target), folder=str(target.parent))
    with suppress(OSError):  # nothing is there yet, or it is told when the file is written
        found = target.stat()
        if _our_stream(found) is None:
            _refuse_devices(target, found)


def reason_of(error: Exception) -> str:
    """The first line of what the system said, without the path that our own sentence names."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]
