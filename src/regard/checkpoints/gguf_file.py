"""GGUF files read lazily: metadata and tensors, dequantised on access by the package `gguf`.

The header is parsed here, because the reader of that package trusts its counts and takes seconds for a vocabulary.
Every count, length and offset is checked before anything of that size is allocated. Independent of which tensors a
model needs.
"""

import mmap
import os
import struct
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from regard.checkpoints.tensor_file import MOST_TENSORS, MappedTensors, TensorEntry, widened
from regard.errors import FileError, require_package
from regard.files.output import reason_of
from regard.files.safe_open import HEAD, LARGEST_SIZE, MOST_AXES, UNLIMITED, format_of, open_file
from regard.memory import format_bytes
from regard.messages import Listed

SUFFIX = ".gguf"
VERSIONS = (2, 3)
LONGEST_HEADER = 2**26
MOST_PAIRS = 2**14
MOST_STRINGS = 1_500_000
"""Strings in all lists together: the tokens and merges of the largest vocabularies are 800,000."""
LONGEST_NAME, LONGEST_STRING = 256, 2**25
_NUMBERS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}
_BOOL, _STRING, _LIST = 7, 8, 9
_PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")
_BLOCKS = 2**15
"""Blocks that are dequantised at a time: the parts of a large matrix would take several times its memory."""


class GgufFile(MappedTensors):
    """The tensors of a GGUF file by name, each read on access; `metadata` has the other values of its header.

    Quantised tensors and bfloat16 are returned as float32, the others as read-only views of the file. Raises FileError
    for an invalid file.
    """

    def __init__(self, path: Path) -> None:
        require_package("gguf", SUFFIX)
        self.path = path
        try:
            with open_file(path, most=UNLIMITED) as file:
                if (kind := format_of(file.read(HEAD))) not in ("gguf", None):
                    raise FileError("other-gguf", path=str(path), reason=FileError(f"kind-{kind}"))
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
        header = _Header(path, self._bytes)
        self.metadata = header.metadata
        self._start, self._entries = header.tensors()

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        raw = np.frombuffer(self._bytes, np.uint8, entry.stop - entry.start, self._start + entry.start)
        found = raw.view(_PLAIN[entry.code]) if entry.code in _PLAIN else _dequantised(raw, entry.code)
        if entry.code == "BF16":
            found = widened(found)
        return np.require(found.reshape(entry.shape), found.dtype.newbyteorder("="), "A")

    @property
    def types(self) -> dict[str, str]:
        """The type in which each tensor is stored: "F16", "Q4_K", …"""
        return {name: entry.code for name, entry in self._entries.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtype that holds each tensor without loss."""
        names = {"F16": "float16", "BF16": "bfloat16", "F64": "float64"}
        return {name: names.get(entry.code, "float32") for name, entry in self._entries.items()}


def _dequantised(raw: np.ndarray, type: str) -> np.ndarray:
    """All numbers of the blocks of one tensor, float32."""
    import gguf
    from gguf.quants import dequantize

    kind = gguf.GGMLQuantizationType[type]
    count, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = raw.reshape(-1, size)
    found = np.empty((len(blocks), count), np.float32)
    with np.errstate(all="ignore"):  # a scale in a damaged file may be infinite
        for start in range(0, len(blocks), _BLOCKS):
            part = blocks[start : start + _BLOCKS]
            # As one row: the package works on groups of 16 rows.
            found[start : start + _BLOCKS] = dequantize(part.reshape(1, -1), kind).reshape(-1, count)
    return found


class _Header:
    """The header of a file, read from front to back; no read goes beyond the file or the limit."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path, self._content = path, content
        self._end = min(len(content), LONGEST_HEADER)
        self._at, self._strings = 4, 0
        if content[:4] != b"GGUF":
            raise FileError("gguf-version", path=str(path), found=content[:4].decode(errors="replace"))
        version = self._number(4)
        if version not in VERSIONS:
            raise FileError("gguf-version", path=str(path), found=self._shown_version(version))
        self._count = self._counted("tensors", MOST_TENSORS)
        pairs = self._counted("metadata", MOST_PAIRS)
        self.metadata: dict[str, Any] = {}
        for _ in range(pairs):
            name = self._string("metadata", LONGEST_NAME)
            if name in self.metadata:
                raise self._garbled(name)
            self.metadata[name] = self._value(name, self._number(4))

    def tensors(self) -> tuple[int, dict[str, TensorEntry]]:
        """Where the data begins, and the entries, which must cover it in order, each at a multiple of the alignment."""
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 8 <= alignment <= 2**20 or alignment & (alignment - 1):
            raise self._garbled("general.alignment")
        entries: dict[str, TensorEntry] = {}
        for _ in range(self._count):
            name, entry = self._entry()
            if name in entries:
                raise self._garbled(name)
            entries[name] = entry
        start = -(-self._at // alignment) * alignment
        end = 0
        for name, entry in sorted(entries.items(), key=lambda item: item[1].start):
            if entry.start != -(-end // alignment) * alignment:
                raise self._garbled(name)
            end = entry.stop
        size = len(self._content) - start
        if size < end:
            raise FileError(
                "model-cut", path=str(self._path), found=format_bytes(max(0, size)), wanted=format_bytes(end)
            )
        if size - end >= alignment:
            raise self._garbled(f"{format_bytes(size - end)} + …")
        return start, entries

    def _entry(self) -> tuple[str, TensorEntry]:
        name = self._string("tensors", LONGEST_NAME)
        axes = self._number(4)
        if not 1 <= axes <= MOST_AXES:
            raise self._garbled(name)
        sizes = [self._number(10) for _ in range(axes)]
        number, start = self._number(4), self._number(10)
        type, block, width = _types().get(number, (f"type {number}", 1, 0))
        choices = (*_PLAIN, *QUANTISED)
        if type not in choices:
            raise FileError(
                "model-tensor-dtype", path=str(self._path), tensor=name, found=type, choices=Listed(choices)
            )
        count = prod(sizes)
        if any(size > LARGEST_SIZE for size in sizes) or sizes[0] % block or count > 2**62 or start > 2**62:
            raise self._garbled(name)
        return name, TensorEntry(type, tuple(reversed(sizes)), start, start + count // block * width)

    # --- values ------------------------------------------------------------------------------------------

    def _number(self, kind: int) -> Any:
        layout = _NUMBERS[kind]
        return struct.unpack(layout, self._take(struct.calcsize(layout), "header"))[0]

    def _take(self, count: int, place: str) -> bytes:
        stop = self._at + count
        if stop > self._end:
            if self._end == len(self._content):
                found, wanted = format_bytes(len(self._content)), format_bytes(stop)
                raise FileError("model-cut", path=str(self._path), found=found, wanted=wanted)
            raise self._large(place, format_bytes(stop), format_bytes(LONGEST_HEADER))
        part, self._at = self._content[self._at : stop], stop
        return part

    def _counted(self, place: str, most: int) -> int:
        found: int = self._number(10)
        if found > most:
            raise self._large(place, f"{found:,}", f"{most:,}")
        return found

    def _string(self, place: str, most: int) -> str:
        length = self._counted(place, most)
        try:
            return self._take(length, place).decode()
        except UnicodeDecodeError as error:
            raise self._garbled(place) from error

    def _value(self, name: str, kind: int) -> Any:
        if kind in _NUMBERS:
            return self._number(kind)
        if kind == _STRING:
            return self._string(name, LONGEST_STRING)
        if kind == _LIST:
            return self._list(name)
        raise self._garbled(name)

    def _list(self, name: str) -> Any:
        """A list of strings, or an array of numbers."""
        kind = self._number(4)
        count = self._counted(name, LONGEST_HEADER)
        if kind in _NUMBERS:
            layout = np.dtype("?" if kind == _BOOL else _NUMBERS[kind])
            return np.frombuffer(self._take(count * layout.itemsize, name), layout)
        if kind != _STRING:
            raise self._garbled(name)
        self._strings += count
        if self._strings > MOST_STRINGS:
            raise self._large(name, f"{self._strings:,}", f"{MOST_STRINGS:,}")
        return [self._token(name) for _ in range(count)]

    def _token(self, name: str) -> str:
        """A string that may be part of a character: bytes that are not UTF-8 are replaced."""
        return self._take(self._counted(name, LONGEST_STRING), name).decode(errors="replace")

    # --- errors ------------------------------------------------------------------------------------------

    def _garbled(self, place: str) -> FileError:
        return FileError("model-garbled", path=str(self._path), place=place[:80])

    def _large(self, place: str, found: str, most: str) -> FileError:
        return FileError("model-part-large", path=str(self._path), place=place[:80], found=found, most=most)

    @staticmethod
    def _shown_version(version: int) -> str:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        return f"{swapped}, big-endian" if swapped in VERSIONS else str(version)


@cache
def _types() -> dict[int, tuple[str, int, int]]:
    """The name of each type by its number, with the numbers in a block and its bytes."""
    import gguf

    return {int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}


def is_gguf(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a GGUF file, by its ending."""
    return Path(path).suffix.lower() == SUFFIX and not Path(path).is_dir()
