"""File formats recognised by their first bytes, and the size of a safetensors header.

A file of the wrong format is named in the error, so that the reader knows what was given. The header of a safetensors
file is measured before it is parsed.
"""

import re
from pathlib import Path
from typing import Literal, NamedTuple

from regard.errors import FileError
from regard.files.input import UNLIMITED, open_file

HEAD = 512
"""Bytes from the beginning of a file that tell what it is."""

Wanted = Literal["weights", "json", "tokenizer", "trace"]

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


def kind_of(head: bytes) -> str | None:
    """The format of a file that begins with these bytes; None where that cannot be told.

    >>> kind_of(b"GGUF\\x03\\0\\0\\0"), kind_of(b"version https://git-lfs.github.com/spec/v1\\n"), kind_of(b"?!")
    ('gguf', 'lfs', None)
    """
    if not head:
        return "empty"
    # Before pickle: a header of 640 bytes begins with the same two.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**40:
        return "safetensors"
    if head.startswith(_ZIP):
        return _archive(head)
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
    return _text(head)


def _archive(head: bytes) -> str:
    """What a zip archive holds, by the name of its first file."""
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if name.endswith((b"data.pkl", b"/version", b".format_version", b"/byteorder")) or b"/.data/" in name:
        return "torch"
    return "numpy" if name.endswith(b".npy") else "compressed"


def _text(head: bytes) -> str | None:
    words = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if words.startswith(b"version https://git-lfs"):
        return "lfs"
    if words.startswith(_PAGES):
        return "page"
    try:
        head[:-4].decode()  # the last character may be cut
    except UnicodeDecodeError:
        return None
    if any(sign < 32 and sign not in b"\t\n\r\f" for sign in head):
        return None
    if words[:1] in (b"{", b"["):
        return "json"
    return "text" if len(head) >= 8 else None


_RIGHT: dict[Wanted, tuple[str, ...]] = {
    "weights": ("safetensors",),
    "trace": ("safetensors",),
    "json": ("json", "text"),
    "tokenizer": ("json", "text"),
}


def refuse_other(path: Path, head: bytes, wanted: Wanted) -> None:
    """FileError that names the format of a file which begins with these bytes, where it is not the wanted one."""
    kind = kind_of(head)
    if kind is not None and kind not in _RIGHT[wanted]:
        raise FileError(f"other-{wanted}", path=str(path), reason=FileError(f"kind-{kind}"))


def refuse_other_file(path: Path, wanted: Wanted, *, within: Path | None = None) -> None:
    """The same for a file, of any size: a model of gigabytes in the place of a small file is named, too."""
    with open_file(path, most=UNLIMITED, within=within) as file:
        refuse_other(path, file.read(HEAD), wanted)


MOST_AXES = 8
LARGEST_SIZE = 2**31 - 1
"""Of one axis."""

# One walk whatever the bytes: nothing is tried twice, and a string that does not end goes to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)', re.DOTALL)


class Excess(NamedTuple):
    """What there is too much of, how much, and the most there may be."""

    place: str
    found: int
    most: int


def parts_in(header: bytes, sign: bytes, most: int) -> int:
    """How often a sign of JSON stands in the header outside of strings; counted exactly only where that matters."""
    if (found := header.count(sign)) <= most:
        return found
    return _STRING.sub(b'""', header).count(sign)


def excess(header: bytes, most_objects: int, most_lists: int, most_values: int) -> Excess | None:
    """What the header has too much of, if anything: objects, lists, or values after a comma."""
    for place, sign, most in (("{", b"{", most_objects), ("[", b"[", most_lists), (",", b",", most_values)):
        if (found := parts_in(header, sign, most)) > most:
            return Excess(f"header, '{place}'", found, most)
    return None
