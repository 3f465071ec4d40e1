"""Opening files for reading: only regular files of bounded size and, for a file of a folder, inside that folder.

Opening a FIFO would block, a device may be endless, and a link in a downloaded folder may point to any file of the
user. Independent of the content; each caller gives its own size limit.
"""

import io
import os
import stat
from pathlib import Path

from regard.errors import AbsentFileError, FileError
from regard.memory import format_bytes

UNLIMITED = 2**63 - 1
"""The limit for files that are mapped into memory and read in parts, such as weights."""
BINARY = getattr(os, "O_BINARY", 0)
"""A flag for `os.open`: without it Windows would write \\r\\n."""
_PIECE = 2**20
_CAREFUL = BINARY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY"))
"""Flags: never block on a FIFO, do not inherit the descriptor, do not become the controlling terminal."""


def open_descriptor(path: Path, flags: int = os.O_RDONLY, *, within: Path | None = None) -> int:
    """A descriptor of a regular file.

    flags    as for `os.open`; O_CREAT creates a missing file
    within   the folder of a model or a run that the file belongs to: links out of it are refused

    Raises FileError if the file is a folder, FIFO, device or socket, or lies outside `within`; raises OSError.
    """
    place = path if within is None else _inside(path, within)
    # Checked before opening: opening alone has effects on some devices.
    if not flags & os.O_CREAT or os.path.lexists(place):
        refuse_special(path, os.stat(place).st_mode)
    descriptor = os.open(place, flags | _CAREFUL, 0o666)
    try:
        refuse_special(path, os.fstat(descriptor).st_mode)  # the file may have been replaced since the first check
    except FileError:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: Path, *, most: int, within: Path | None = None) -> io.BufferedReader:
    """A regular file of at most `most` bytes, open for reading.

    Raises FileError like `open_descriptor`, and if the file is larger or cannot be read; AbsentFileError if there is
    none.
    """
    try:
        file = os.fdopen(open_descriptor(path, within=within), "rb")
    except FileNotFoundError as error:
        raise AbsentFileError("file-absent", path=str(path)) from error
    except OSError as error:
        raise read_error(path, error) from error
    if (size := os.fstat(file.fileno()).st_size) > most:
        file.close()
        raise _too_large(path, size, most)
    return file


def read_file(path: Path, *, most: int, within: Path | None = None) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises the same errors as `open_file`."""
    with open_file(path, most=most, within=within) as file:
        try:
            content = file.read(os.fstat(file.fileno()).st_size + 1)
            # The file grows while it is read, or reports no size, as files of /proc do.
            while len(content) <= most and (more := file.read(_PIECE)):
                content += more
        except OSError as error:
            raise read_error(path, error) from error
    if len(content) > most:
        raise _too_large(path, len(content), most)
    return content


def check_file(path: Path, *, most: int, within: Path | None = None) -> None:
    """The same checks for a file that a library opens by name. Raises the same errors as `open_file`."""
    open_file(path, most=most, within=within).close()


def refuse_special(path: Path, mode: int) -> None:
    """FileError if a mode from `os.stat` is not that of a regular file."""
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
    raise FileError(f"file-is-{kinds.get(stat.S_IFMT(mode), 'device')}", path=str(path))


def read_error(path: Path, error: OSError) -> FileError:
    """The error for a file that the system cannot read."""
    return FileError("model-unreadable", path=str(path), reason=error.strerror or str(error))


def check_inside(path: Path, folder: Path) -> None:
    """FileError if a file or folder, with links resolved, lies outside `folder`."""
    _inside(path, folder)


def _inside(path: Path, folder: Path) -> Path:
    """The resolved path of a file in a folder. FileError if it lies outside."""
    place, root = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    # A snapshot in a Hugging Face cache contains links to files under ../../blobs.
    roots = [root, *([root.parent.parent / "blobs"] if root.parent.name == "snapshots" else [])]
    if not any(one in place.parents for one in roots):
        raise FileError("model-outside", path=str(path), target=str(place))
    return place


def _too_large(path: Path, found: int, most: int) -> FileError:
    sizes = [format_bytes(found), format_bytes(most)]
    if sizes[0] == sizes[1]:
        sizes = [f"{found:,} B", f"{most:,} B"]
    return FileError("file-too-large", path=str(path), found=sizes[0], most=sizes[1])
