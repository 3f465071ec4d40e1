"""File formats recognised by their first bytes, and limits on the header of a safetensors file.

An error about a file of the wrong format names its actual format. The header of a safetensors file is checked against
limits before it is parsed.
"""

import re
from pathlib import Path
from typing import Literal, NamedTuple

from regard.errors import FileError
from regard.files.input import UNLIMITED, open_file

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
