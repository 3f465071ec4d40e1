"""A safetensors file, read lazily and written in one go: eight bytes of length, a JSON header, then the numbers.

We read and write the bytes ourselves, because NumPy has no bfloat16 and the safetensors package hands NumPy none of
it. The header is looked at in full before a number is believed; which tensors a model needs is not known here.
"""

import json
import mmap
import os
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from regard.arrays import Array, to_numpy
from regard.axes import Shape
from regard.checkpoints.strict_json import JsonError, parse
from regard.errors import DtypeError, FileError
from regard.files.formats import HEAD, LARGEST_SIZE, MOST_AXES, excess, refuse_other
from regard.files.input import UNLIMITED, open_file
from regard.files.output import reason_of
from regard.memory import spell
from regard.messages import Listed

DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "I8"}
"""Numbers as we call them and as the format does; int8 means something only beside a scale (`quantised.py`)."""
_BYTES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}
_NAMES = {word: name for name, word in DTYPES.items()}

LONGEST_HEADER = 2**25
MOST_TENSORS = 100_000
MOST_TALK = 2**20
"""Bytes of a header beside what its tensors need: metadata, spaces."""


class Entry(NamedTuple):
    """One tensor in the header; `start` counts from the end of the header."""

    word: str
    shape: Shape
    start: int

    @property
    def stop(self) -> int:
        return self.start + prod(self.shape) * np.dtype(_BYTES[self.word]).itemsize


class TensorFile(Mapping[str, np.ndarray]):
    """The tensors of a file by name, each read when it is asked for: a view of the file, read-only.

    bfloat16, which NumPy lacks, comes as float32, which holds every value of it. Raises FileError for a file that is
    not what it should be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_file(path, most=UNLIMITED) as file:
                size = os.fstat(file.fileno()).st_size
                refuse_other(path, file.read(HEAD), "weights")
                if size < 8:
                    raise FileError("model-garbled", path=str(path), place="header")
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
        length = int.from_bytes(self._bytes[:8], "little")
        # A tensor of one number takes four bytes, and about 150 in the header; those of models are larger.
        most = min(LONGEST_HEADER, size - 8, MOST_TALK + size // 2)
        if length > most:
            raise FileError("model-part-large", path=str(path), place="header", found=spell(length), most=spell(most))
        self._start = 8 + length
        self._entries = _entries(path, self._bytes[8 : self._start], size - self._start)

    def __getitem__(self, name: str) -> np.ndarray:
        entry = self._entries[name]
        count = prod(entry.shape)
        if not count:
            return np.zeros(entry.shape, np.float32)
        raw = np.frombuffer(self._bytes, _BYTES[entry.word], count, self._start + entry.start)
        if entry.word == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)  # the upper half of a float32
        return np.require(raw.reshape(entry.shape), raw.dtype.newbyteorder("="), "A")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Read off the header; no number is touched."""
        return {name: entry.shape for name, entry in self._entries.items()}

    @property
    def dtypes(self) -> dict[str, str]:
        """What each tensor is in the file: "float32", "bfloat16", …"""
        return {name: _NAMES[entry.word] for name, entry in self._entries.items()}

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All of them, read now into memory of their own; in one dtype if given."""
        return {name: np.array(array, dtype or array.dtype) for name, array in self.items()}


def _entries(path: Path, header: bytes, size: int) -> dict[str, Entry]:
    """What the header says, believed only where it accounts for each of the `size` bytes after it once."""
    # Each tensor has one object, two lists and about twelve values; whoever sends more wants memory, not a model.
    if found := excess(header, MOST_TENSORS + 2, 2 * MOST_TENSORS + 2, 16 * MOST_TENSORS):
        raise FileError("model-part-large", path=str(path), **found._asdict())
    try:
        found = parse(header)
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=f"header, {error}") from error
    if not isinstance(found, dict) or len(found) > MOST_TENSORS:
        raise FileError("model-garbled", path=str(path), place="header")
    found.pop("__metadata__", None)
    entries = {name: _entry(path, name, about) for name, about in found.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != end:
            raise FileError("model-garbled", path=str(path), place=name[:80])
        end = entry.stop
    if end != size:
        raise FileError("model-cut", path=str(path), found=spell(size), wanted=spell(end))
    return entries


def _entry(path: Path, name: str, about: Any) -> Entry:
    match about:
        case {"dtype": str(word), "shape": [*shape], "data_offsets": [start, stop], **rest} if not rest:
            if word not in _BYTES:
                raise FileError("model-tensor-dtype", path=str(path), tensor=name, found=word, choices=_choices())
            if len(shape) <= MOST_AXES and all(type(size) is int and size >= 0 for size in (*shape, start, stop)):
                if any(size > LARGEST_SIZE for size in shape):
                    raise FileError("model-garbled", path=str(path), place=name[:80])
                entry = Entry(word, tuple(shape), start)
                if entry.stop == stop:
                    return entry
    raise FileError("model-garbled", path=str(path), place=name[:80])


def _choices() -> Listed:
    return Listed(DTYPES)


# --- writing ---------------------------------------------------------------------------------------------


def check_dtypes(tensors: Mapping[str, Array]) -> None:
    """NumPy arrays or torch tensors of floating-point numbers that we write, or a DtypeError that names another."""
    for name, tensor in tensors.items():
        if not hasattr(tensor, "dtype") or _word(tensor) in (None, "I8"):
            raise DtypeError("float-wanted", name=name, dtype=getattr(tensor, "dtype", type(tensor).__name__))


def write_tensors(file: BinaryIO, tensors: Mapping[str, Array]) -> None:
    """Header and numbers, one tensor in memory at a time; the widest first, so that each is aligned in the file."""
    words = {name: _word(tensor) or "" for name, tensor in tensors.items()}
    order = sorted(tensors, key=lambda name: -np.dtype(_BYTES[words[name]]).itemsize)
    header, end = {}, 0
    for name in order:
        entry = Entry(words[name], tuple(int(size) for size in tensors[name].shape), end)
        end = entry.stop
        header[name] = {"dtype": entry.word, "shape": entry.shape, "data_offsets": (entry.start, entry.stop)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        array = to_numpy(tensors[name])
        if words[name] == "BF16":  # came as float32 with the lower half empty
            array = (np.asarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        file.write(array.astype(_BYTES[words[name]], copy=False).tobytes())


def _word(tensor: Array) -> str | None:
    """The format's word for a tensor's dtype, foreign byte order included; None where it has none of ours."""
    dtype = tensor.dtype
    return DTYPES.get(dtype.name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch."))
