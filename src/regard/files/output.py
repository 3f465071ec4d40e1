"""Atomic writing of files, checks of output paths, file locks, and errors for failed writes."""

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
from regard.files.safe_open import BINARY, open_descriptor, refuse_special
from regard.memory import format_bytes
from regard.messages import Listed

TRACE = ".safetensors"
PICTURES = (".png", ".svg", ".pdf")
VECTOR = ".svg"
"""Extensions of the pictures that matplotlib writes."""
PAGES = (".html", ".htm")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> None:
        """Lock an open file until it is closed. Raises BlockingIOError if another process holds the lock."""
        # Windows forbids reading locked bytes, so lock a byte far behind the content.
        os.lseek(descriptor, 2**30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def try_lock(descriptor: int) -> None:
        """Lock an open file until it is closed. Raises BlockingIOError if another process holds the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def open_lock(path: Path) -> int:
    """A descriptor of a lock file, created if missing. Links and files that are not regular are refused.

    Raises FileError, and TooLargeError if the disk is full.
    """
    try:
        return open_descriptor(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise write_error(error, path, 0) from error


# --- writing ---------------------------------------------------------------------------------------------


def write_output(target: Path, content: bytes) -> None:
    """Write a file that the user named: a picture, a page, lines of text.

    A regular or new file is written atomically, as by `write_atomically`. A pipe, a terminal or another stream, such as
    /dev/stdout, is written into. Raises the same errors as `write_atomically`.
    """
    with _writing_to(target, len(content)):
        descriptor = _open_stream(target)
        if descriptor is None:
            replace_target(target, lambda temporary: temporary.write_bytes(content))
        else:
            _write_into(descriptor, [content])


def write_atomically(
    target: Path,
    write: Callable[[Path], object],
    *also: type[Exception],
    need: int,
    into_streams: bool = False,
    sync: bool = False,
) -> None:
    """Let `write` create a temporary file beside the target, then rename it: an interrupted write leaves the old file.

    need          bytes that will be written, for the message about a full disk
    into_streams  the user named the target, and it may be a pipe or a terminal, as in `write_output`
    sync          the content is on the disk before the old file is replaced, so that a power failure leaves one of them

    A link is kept and its target is written. A new file gets permissions by the umask, an existing one keeps its own.
    Raises FileError if the target is a folder, FIFO, device or socket, if the system refuses, or if one of the
    exceptions `also` is raised; TooLargeError if the disk is full.
    """
    with _writing_to(target, need, *also):
        descriptor = _open_stream(target) if into_streams else None
        if descriptor is None:
            replace_target(target, write, sync=sync)
        else:
            _write_into(descriptor, _pieces(write))


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file of a known content atomically. Raises the same errors as `write_atomically`."""
    write_atomically(target, lambda temporary: temporary.write_bytes(content), need=len(content))


def write_new(target: Path, content: bytes) -> bool:
    """Write a new file atomically. Returns False, and changes nothing, if a file exists.

    Raises FileError if something other than a regular file exists there; otherwise like `write_atomically`.
    """
    with _writing_to(target, len(content)):
        if os.path.lexists(target):
            _check_regular(target)
            return False
        temporary = _temporary_path(target)
        try:
            mode = _create_private(temporary)
            temporary.write_bytes(content)
            temporary.chmod(mode)
            try:
                os.link(temporary, target)  # unlike a rename, it fails if another process created the file first
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links
                os.rename(temporary, target)
        finally:
            _remove(temporary)
    return True


@contextmanager
def _writing_to(target: Path, need: int, *also: type[Exception]) -> Iterator[None]:
    """Convert system errors during a write to FileError and TooLargeError."""
    _check_name(target)
    refusals: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except RegardError:
        raise
    except refusals as error:
        raise write_error(error, target, need) from error


def _check_name(target: Path) -> None:
    if str(target) == "-":
        raise ArgumentError("file-is-dash")
    if "\0" in str(target):
        raise FileError("file-unwritable", path=str(target), reason="NUL")


def _temporary_path(place: Path) -> Path:
    return place.with_name(f".{place.name[:40]}.{os.urandom(4).hex()}")  # a name has at most 255 bytes


def replace_target(
    target: Path,
    write: Callable[[Path], object],
    *,
    sync: bool = False,
    temporary_path: Callable[[Path], Path] = _temporary_path,
    after: Callable[[str], object] | None = None,
) -> Path:
    """Replace the target, or the file that it links to; return the path of the file. Raises OSError and FileError.

    `after` is called with "fsync" and "rename" after these system calls.
    """
    place = resolve_target(target)
    before = place.stat() if place.exists() else None
    if before is not None and not os.access(place, os.W_OK):  # a rename ignores the file's permissions
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    temporary, notify = temporary_path(place), after or (lambda _: None)
    try:
        mode = _create_private(temporary)
        write(temporary)
        if sync:
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            notify("fsync")
        if before is not None:
            mode = stat.S_IMODE(before.st_mode) & 0o777
            with suppress(OSError, AttributeError):  # a file of another owner: root keeps its owner
                os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(mode)
        os.replace(temporary, place)
        notify("rename")
    finally:
        _remove(temporary)
    return place


def resolve_target(target: Path) -> Path:
    """The path of a regular or new file with links resolved. FileError if something else is there."""
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if os.path.lexists(place):
        _check_regular(place)
    return place


def _check_regular(path: Path) -> None:
    try:
        refuse_special(path, path.stat().st_mode)
    except FileNotFoundError:  # a broken link
        raise FileError("file-unwritable", path=str(path), reason=os.strerror(errno.EEXIST)) from None


def _create_private(temporary: Path) -> int:
    """Create an empty file that only its owner can read. Returns the permissions of a new file by the umask.

    The umask cannot be read without changing it for all threads.
    """
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
    temporary.chmod(0o600)
    return mode


def _remove(temporary: Path) -> None:
    with suppress(OSError):  # must not hide the first error
        temporary.unlink(missing_ok=True)


# --- pipes, terminals, devices ---------------------------------------------------------------------------


def _open_stream(target: Path) -> int | None:
    """A descriptor to write into if the target is not a regular file; None if it is one or does not exist.

    Raises FileError and OSError.
    """
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if (ours := _our_stream(found)) is not None:
        return os.dup(ours)
    if stat.S_ISREG(found.st_mode):
        # A deleted file that is reached by /proc/self/fd has no name, so it cannot be replaced.
        real = Path(os.path.realpath(target))
        is_deleted = not real.exists() or not os.path.samestat(real.stat(), found)
        return os.open(target, os.O_WRONLY | os.O_TRUNC) if is_deleted else None
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
    """The descriptor of our own stdout or stderr if it is that file.

    Also for a regular file: the process that opened it continues to write there, so it must not be replaced.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or without a descriptor
            if os.path.samestat(os.fstat(stream.fileno()), found):
                stream.flush()
                return stream.fileno()
    return None


def _refuse_devices(target: Path, found: os.stat_result) -> None:
    """FileError unless the target is a pipe, the terminal, or a device that stores nothing.

    Writing to any other device could destroy data or have effects.
    """
    known = []
    for name in ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty"):
        with suppress(OSError):
            known.append(os.stat(name).st_rdev)
    is_known = stat.S_ISCHR(found.st_mode) and found.st_rdev in known
    if not (is_known or stat.S_ISFIFO(found.st_mode)):
        refuse_special(target, found.st_mode)


def _pieces(write: Callable[[Path], object]) -> Iterator[bytes]:
    """The content that `write` writes to a file, in pieces."""
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        made = Path(folder, "output")
        write(made)
        with made.open("rb") as file:
            yield from iter(lambda: file.read(2**20), b"")


def _write_into(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write all pieces, then close the descriptor."""
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


# --- errors of the system --------------------------------------------------------------------------------


def write_error(error: Exception, path: Path, need: int) -> RegardError:
    """The error for `need` bytes that could not be written: TooLargeError if the disk is full, else FileError."""
    if not is_out_of_space(error):
        return FileError("file-unwritable", path=str(path), reason=reason_of(error))
    return TooLargeError(
        "disk-full", path=str(path), need=format_bytes(need), free=_free(path), reason=reason_of(error)
    )


def is_out_of_space(error: BaseException) -> bool:
    """Whether the disk is full, or a quota or file size limit is reached. Rust libraries report it only as text."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(f"(os error {number})" in str(error) for number in _FULL)


def _free(path: Path) -> str:
    """The free space on the disk of a file; 0 for a device."""
    with suppress(OSError):
        if path.exists() and not path.is_file() and not path.is_dir():
            return format_bytes(0)
        folder = next(one for one in (path, *path.parents) if one.is_dir())
        return format_bytes(shutil.disk_usage(folder).free)
    return "?"


# --- names -----------------------------------------------------------------------------------------------


def extension_of(target: Path, *endings: str) -> str:
    """The extension of the name; the first of `endings` if it has none. ArgumentError for any other extension.

    >>> extension_of(Path("a.SVG"), ".png", ".svg"), extension_of(Path("a"), ".png", ".svg")
    ('.svg', '.png')
    """
    found = target.suffix.lower() or endings[0]
    if found not in endings:
        better = target.with_suffix(endings[0])
        raise ArgumentError("file-ending", path=str(target), endings=Listed(endings), better=str(better))
    return found


def check_target(target: Path) -> None:
    """FileError if no file can be written there. For a check before a long computation."""
    _check_name(target)
    if not target.parent.is_dir():
        raise FileError("file-no-folder", path=str(target), folder=str(target.parent))
    with suppress(OSError):  # nothing is there yet, or the write itself will fail with the error
        found = target.stat()
        if _our_stream(found) is None:
            _refuse_devices(target, found)


def reason_of(error: Exception) -> str:
    """The first line of the system's message, without the path, which our own message names."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]
