"""Opening files for reading safely: only regular files of bounded size inside their folder; formats by the first bytes.

Opening a FIFO would block, a device may be endless, and a link in a downloaded folder may point to any file of the
user. Each caller gives its own size limit. An error about a file of the wrong format names its actual format. The
header of a safetensors file is checked against limits before it is parsed.
"""

import io
import mmap
import os
import re
import stat
from pathlib import Path
from typing import Literal, NamedTuple

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


def map_file(file: io.BufferedReader) -> mmap.mmap:
    """The content of a file in memory, each page read on access; writing to it changes this copy, not the file."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def release_pages(content: mmap.mmap, start: int, stop: int) -> None:
    """Free the memory of whole pages of a mapped file that were only read; they are read again on access."""
    if not hasattr(mmap, "MADV_DONTNEED"):  # as on Windows
        return
    first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        content.madvise(mmap.MADV_DONTNEED, first, last - first)


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


# --- formats -----------------------------------------------------------------------------------------------


HEAD = 512
"""The number of bytes at the beginning of a file from which its format is recognised."""

ExpectedFormat = Literal["weights", "json", "tokenizer", "trace"]

_STARTS: dict[str, tuple[bytes, ...]] = {
    "gguf": (b"GGUF", b"lmgg", b"tjgg", b"algg"),
    "hdf5": (b"\x89HDF\r\n\x1a\n",),
    "numpy": (b"\x93NUMPY",),
    "compressed": (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"),
    "picture": (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF", b"BM", b"II*\0", b"MM\0*"),
    "pdf": (b"%PDF-",),
    "program": (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"#!"),
    "table": (b"PAR1", b"ARROW1", b"SQLite format 3\0"),
    "utf-16": (b"\xff\xfe", b"\xfe\xff"),
}
_PAGES = (b"<!doctype", b"<html", b"<head", b"<?xml", b"<error", b"<!--")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def format_of(head: bytes) -> str | None:
    """The format of a file that begins with these bytes; None if unknown.

    >>> format_of(b"GGUF\\x03\\0\\0\\0"), format_of(b"version https://git-lfs.github.com/spec/v1\\n"), format_of(b"?!")
    ('gguf', 'lfs', None)
    """
    if not head:
        return "empty"
    # Before pickle: a safetensors header of 640 bytes begins with the same two bytes.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**40:
        return "safetensors"
    if head.startswith(_ZIP):
        return _archive_format(head)
    for kind, starts in _STARTS.items():
        if head.startswith(starts):
            return kind
    if head[257:262] == b"ustar":
        return "compressed"
    if head[0] == 0x80 and 2 <= int.from_bytes(head[1:2], "little") <= 5:
        return "pickle"
    if head[4:8] == b"TFL3" or (
        head[0] == 8 and 0 < int.from_bytes(head[1:2], "little") < 32 and head[2:3] in b"\x12:"
    ):
        return "graph"  # TensorFlow Lite; ONNX: field 1, the version, then its producer or the graph
    if head[:1] == b"\n" and b"<unk>" in head[:64]:
        return "sentencepiece"
    if len(head) >= 16 and not head.strip(b"\0"):
        return "zeros"
    return _text_format(head)


def _archive_format(head: bytes) -> str:
    """The format of a zip archive, by the name of its first file."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if name.endswith((b"data.pkl", b"/version", b".format_version", b"/byteorder")) or b"/.data/" in name:
        return "torch"
    return "numpy" if name.endswith(b".npy") else "compressed"


def _text_format(head: bytes) -> str | None:
    words = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if words.startswith(b"version https://git-lfs"):
        return "lfs"
    if words.startswith(_PAGES):
        return "page"
    try:
        head[:-4].decode()  # the last character may be incomplete
    except UnicodeDecodeError:
        return None
    if any(sign < 32 and sign not in b"\t\n\r\f" for sign in head):
        return None
    if words[:1] in (b"{", b"["):
        return "json"
    return "text" if len(head) >= 8 else None


_ACCEPTED: dict[ExpectedFormat, tuple[str, ...]] = {
    "weights": ("safetensors",),
    "trace": ("safetensors",),
    "json": ("json", "text"),
    "tokenizer": ("json", "text"),
}


def check_format(path: Path, head: bytes, wanted: ExpectedFormat) -> None:
    """FileError that names the format of a file with these first bytes, if it is not the wanted one."""
    kind = format_of(head)
    if kind is not None and kind not in _ACCEPTED[wanted]:
        raise FileError(f"other-{wanted}", path=str(path), reason=FileError(f"kind-{kind}"))


def check_file_format(path: Path, wanted: ExpectedFormat, *, within: Path | None = None) -> None:
    """The same check for a file of any size, so that a large model given instead of a small file is recognised."""
    with open_file(path, most=UNLIMITED, within=within) as file:
        check_format(path, file.read(HEAD), wanted)


MOST_AXES = 8
LARGEST_SIZE = 2**31 - 1
"""Of one axis."""

# One pass for any bytes, without backtracking; an unterminated string extends to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)', re.DOTALL)


class Excess(NamedTuple):
    """What exceeds a limit: its place, its count and the limit."""

    place: str
    found: int
    most: int


def count_outside_strings(header: bytes, sign: bytes, most: int) -> int:
    """The number of times `sign` occurs in a JSON header outside strings; an upper bound if that is within `most`."""
    if (found := header.count(sign)) <= most:
        return found
    return _STRING.sub(b'""', header).count(sign)


def find_excess(header: bytes, most_objects: int, most_lists: int, most_values: int) -> Excess | None:
    """The first limit that the header exceeds, if any: objects, lists, or values after a comma."""
    for place, sign, most in (("{", b"{", most_objects), ("[", b"[", most_lists), (",", b",", most_values)):
        if (found := count_outside_strings(header, sign, most)) > most:
            return Excess(f"header, '{place}'", found, most)
    return None
