"""The one way to open a file that is read: a regular file of bounded size, and where it has a folder, inside it.

A FIFO would be waited for, a device may have no end, and a link of a folder that came from elsewhere may lead to any
file of the reader. What a file holds is not known here, nor how much of it a caller can use: each gives its own limit.
"""

import io
import os
import stat
from pathlib import Path

from regard.errors import AbsentFileError, FileError
from regard.memory import spell

UNLIMITED = 2**63 - 1
"""For files that are mapped into memory and read in parts, such as weights."""
BINARY = getattr(os, "O_BINARY", 0)
"""Among the flags of a file that is opened: Windows would write \\r\\n."""
_PIECE = 2**20
_CAREFUL = BINARY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY"))
"""Nothing here waits for the other end of a FIFO, is handed to a child or becomes the terminal of the process."""


def open_descriptor(path: Path, flags: int = os.O_RDONLY, *, within: Path | None = None) -> int:
    """A descriptor of a regular file.

    flags    as `os.open` takes them; with O_CREAT a file that is not there is made
    within   the folder of a model or a run that the file belongs to: no link may lead out of it

    Raises FileError where the file is a folder, a FIFO, a device or a socket, or lies outside; OSError.
    """
    place = path if within is None else _inside(path, within)
    # Before it is opened: opening alone makes some devices do something.
    if not flags & os.O_CREAT or os.path.lexists(place):
        refuse_special(path, os.stat(place).st_mode)
    descriptor = os.open(place, flags | _CAREFUL, 0o666)
    try:
        refuse_special(path, os.fstat(descriptor).st_mode)  # what was opened may not be what was looked at
    except FileError:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: Path, *, most: int, within: Path | None = None) -> io.BufferedReader:
    """A regular file of at most so many bytes, open for reading.

    Raises FileError as `open_descriptor`, where the file is larger or the system refuses; AbsentFileError where there
    is none.
    """
    try:
        file = os.fdopen(open_descriptor(path, within=within), "rb")
    except FileNotFoundError as error:
        raise AbsentFileError("file-absent", path=str(path)) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if (size := os.fstat(file.fileno()).st_size) > most:
        file.close()
        raise _too_large(path, size, most)
    return file


def read_file(path: Path, *, most: int, within: Path | None = None) -> bytes:
    """All of a regular file of at most so many bytes. Raises as `open_file`."""
    with open_file(path, most=most, within=within) as file:
        try:
            content = file.read(os.fstat(file.fileno()).st_size + 1)
            # One that grows as it is read, or does not tell its size, as those of /proc.
            while len(content) <= most and (more := file.read(_PIECE)):
                content += more
        except OSError as error:
            raise unreadable(path, error) from error
    if len(content) > most:
        raise _too_large(path, len(content), most)
    return content


def check_file(path: Path, *, most: int, within: Path | None = None) -> None:
    """The same checks for a file that a library opens by its name. Raises as `open_file`."""
    open_file(path, most=most, within=within).close()


def refuse_special(path: Path, mode: int) -> None:
    """FileError where a mode, as `os.stat` gives it, is not that of a regular file."""
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
    raise FileError(f"file-is-{kinds.get(stat.S_IFMT(mode), 'device')}", path=str(path))


def unreadable(path: Path, error: OSError) -> FileError:
    """What to say when the system does not let a file be read."""
    return FileError("model-unreadable", path=str(path), reason=error.strerror or str(error))


def check_inside(path: Path, folder: Path) -> None:
    """FileError where a file or folder, its links followed, lies outside of a folder that it belongs to."""
    _inside(path, folder)


def _inside(path: Path, folder: Path) -> Path:
    """Where a file of a folder really lies."""
    place, root = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    # A snapshot in a cache of Hugging Face is links to files that lie once, under ../../blobs.
    roots = [root, *([root.parent.parent / "blobs"] if root.parent.name == "snapshots" else [])]
    if not any(one in place.parents for one in roots):
        raise FileError("model-outside", path=str(path), target=str(place))
    return place


def _too_large(path: Path, found: int, most: int) -> FileError:
    sizes = [spell(found), spell(most)]
    if sizes[0] == sizes[1]:
        sizes = [f"{found:,} B", f"{most:,} B"]
    return FileError("file-too-large", path=str(path), found=sizes[0], most=sizes[1])
