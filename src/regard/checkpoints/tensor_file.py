"""Safetensors files read lazily and written, bfloat16 included; and weights stored as 8-bit integers with scales.

This module reads and writes the format itself, because NumPy has no bfloat16 and the safetensors package does not
convert it for NumPy. The whole header is validated before any data is used. Independent of which tensors a model needs.
Matrix X may be stored as 8-bit integers n with a float32 scale for each row, X.scale; `Weights` returns it as float32:

    x ≈ n · scale,  n = round(x / scale) from −127 to 127,  scale = the row's largest |x| / 127
"""

import json
import os
from collections.abc import Iterator, Mapping
from math import prod
from mmap import mmap
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from regard.arrays import Array, to_numpy
from regard.axes import Shape
from regard.errors import DtypeError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.output import reason_of, write_atomically, write_bytes, write_error
from regard.files.safe_open import (
    HEAD,
    LARGEST_SIZE,
    MOST_AXES,
    UNLIMITED,
    check_format,
    find_excess,
    map_file,
    open_file,
    release_pages,
)
from regard.memory import format_bytes
from regard.messages import Listed

CONFIG, TENSORS = "config.json", "model.safetensors"
"""The files of a model folder."""
DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "I8"}
"""Our names of dtypes and the format's codes; int8 is only valid with a scale (`quantise`)."""
_BYTES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1"}
_NAMES = {code: name for name, code in DTYPES.items()}
_OTHER_BYTES = {
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "<u1",
}
"""Dtypes of tensors that are no weights, such as position ids in files of public models; their values are not read."""

LONGEST_HEADER = 2**25
MOST_TENSORS = 100_000
MOST_OVERHEAD = 2**20
"""Bytes of a header besides its tensor entries: metadata, spaces."""


class TensorEntry(NamedTuple):
    """One tensor in the header: the code of its dtype or its quantised type, its shape, its bytes after the header."""

    code: str
    shape: Shape
    start: int
    stop: int

    @classmethod
    def of(cls, code: str, shape: Shape, start: int) -> "TensorEntry":
        """The entry of a tensor that is not quantised."""
        return cls(code, shape, start, start + prod(shape) * np.dtype((_BYTES | _OTHER_BYTES)[code]).itemsize)


class MappedTensors(Mapping[str, np.ndarray]):
    """The tensors of a file that is mapped into memory; a subclass reads the header, and each tensor on access."""

    _bytes: mmap
    _start: int
    """The place in the file where the header ends."""
    _entries: dict[str, TensorEntry]

    def release(self, name: str) -> None:
        """Free the memory that reading a tensor took; it is read again on access."""
        entry = self._entries[name]
        release_pages(self._bytes, self._start + entry.start, self._start + entry.stop)

    def __contains__(self, name: object) -> bool:
        return name in self._entries  # Mapping would read the tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the header; no data is read."""
        return {name: entry.shape for name, entry in self._entries.items()}


class TensorFile(MappedTensors):
    """The tensors of a file by name, each read on access, as a read-only view of the file.

    bfloat16, which NumPy lacks, is returned as float32, which represents every value exactly. Raises FileError for an
    invalid file.
    """

    def __init__(self, path: Path, *, others: bool = False) -> None:
        """`others`: the file may also hold tensors that are no weights, of dtypes that cannot be read here."""
        self.path = path
        known = _BYTES | _OTHER_BYTES if others else _BYTES
        try:
            with open_file(path, most=UNLIMITED) as file:
                size = os.fstat(file.fileno()).st_size
                check_format(path, file.read(HEAD), "weights")
                if size < 8:
                    raise FileError("model-garbled", path=str(path), place="header")
                self._bytes = map_file(file)
        except OSError as error:
            raise FileError("model-unreadable", path=str(path), reason=reason_of(error)) from error
        length = int.from_bytes(self._bytes[:8], "little")
        # A tensor with one number has four bytes of data and about 150 in the header; tensors of models are larger.
        most = min(LONGEST_HEADER, size - 8, MOST_OVERHEAD + size // 2)
        if length > most:
            raise FileError(
                "model-part-large", path=str(path), place="header", found=format_bytes(length), most=format_bytes(most)
            )
        self._start = 8 + length
        header = _header(path, self._bytes[8 : self._start])
        self._metadata = header.pop("__metadata__", None)
        self._entries = _entries(path, header, size - self._start, frozenset(known))

    def __getitem__(self, name: str) -> np.ndarray:
        raw = TensorFile.raw(self, name)  # not that of a subclass
        if self._entries[name].code == "BF16":
            return widened(raw)
        raw.flags.writeable = False
        return raw

    def raw(self, name: str) -> np.ndarray:
        """A tensor as it is stored, bfloat16 as uint16; writing to it does not change the file."""
        entry = self._entries[name]
        if entry.code not in _BYTES:
            raise _dtype_error(self.path, name, entry.code)
        count, dtype = prod(entry.shape), np.dtype(_BYTES[entry.code])
        if not count:
            return np.zeros(entry.shape, dtype.newbyteorder("="))
        raw = np.frombuffer(self._bytes, dtype, count, self._start + entry.start)
        return np.require(raw.reshape(entry.shape), dtype.newbyteorder("="), "A")

    @property
    def dtypes(self) -> dict[str, str]:
        """The stored dtype of each tensor: "float32", "bfloat16", …"""
        return {name: _NAMES.get(entry.code, entry.code) for name, entry in self._entries.items()}

    @property
    def metadata(self) -> dict[str, str]:
        """The texts that the writer of the file added, by name. Raises FileError if they are anything else."""
        match self._metadata:
            case None:
                return {}
            case dict(found) if all(isinstance(value, str) for value in found.values()):
                return found
        raise FileError("model-garbled", path=str(self.path), place="__metadata__")

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All tensors, copied into memory one after the other; in one dtype if given."""
        found = {}
        for name, array in self.items():
            found[name] = np.array(array, dtype or array.dtype)
            self.release(name)
        return found


def widened(bits: np.ndarray) -> np.ndarray:
    """bfloat16, given as uint16, as float32: its bits are the upper half of a float32's."""
    return np.left_shift(bits, 16, dtype=np.uint32).view(np.float32)


def _header(path: Path, header: bytes) -> dict[str, Any]:
    """The header as JSON. Raises FileError."""
    # A tensor has one object, two lists and about twelve values; more is an attempt to exhaust memory.
    if found := find_excess(header, MOST_TENSORS + 2, 2 * MOST_TENSORS + 2, 16 * MOST_TENSORS):
        raise FileError("model-part-large", path=str(path), **found._asdict())
    try:
        found = parse_json(header)
    except JsonError as error:
        raise FileError("model-garbled", path=str(path), place=f"header, {error}") from error
    if not isinstance(found, dict) or len(found) > MOST_TENSORS:
        raise FileError("model-garbled", path=str(path), place="header")
    return found


def _entries(path: Path, header: Mapping[str, Any], size: int, codes: frozenset[str]) -> dict[str, TensorEntry]:
    """The entries of the header. FileError unless they cover each of the `size` bytes after it exactly once."""
    entries = {name: _entry(path, name, about, codes) for name, about in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != end:
            raise FileError("model-garbled", path=str(path), place=name[:80])
        end = entry.stop
    if end != size:
        raise FileError("model-cut", path=str(path), found=format_bytes(size), wanted=format_bytes(end))
    return entries


def _entry(path: Path, name: str, about: Any, codes: frozenset[str]) -> TensorEntry:
    match about:
        case {"dtype": str(code), "shape": [*shape], "data_offsets": [start, stop], **rest} if not rest:
            if code not in codes:
                raise _dtype_error(path, name, code)
            if len(shape) <= MOST_AXES and all(type(size) is int and size >= 0 for size in (*shape, start, stop)):
                if any(size > LARGEST_SIZE for size in shape):
                    raise FileError("model-garbled", path=str(path), place=name[:80])
                entry = TensorEntry.of(code, tuple(shape), start)
                if entry.stop == stop:
                    return entry
    raise FileError("model-garbled", path=str(path), place=name[:80])


def _dtype_error(path: Path, name: str, code: str) -> FileError:
    return FileError("model-tensor-dtype", path=str(path), tensor=name, found=code, choices=Listed(DTYPES))


# --- writing ---------------------------------------------------------------------------------------------


def check_dtypes(tensors: Mapping[str, Array]) -> None:
    """DtypeError unless all are NumPy arrays or torch tensors of a floating-point dtype that can be written."""
    for name, tensor in tensors.items():
        if not hasattr(tensor, "dtype") or _code(tensor) in (None, "I8"):
            raise DtypeError("float-wanted", name=name, dtype=getattr(tensor, "dtype", type(tensor).__name__))


def write_tensors(
    file: BinaryIO,
    tensors: Mapping[str, Array],
    dtypes: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write header and data, one tensor in memory at a time; the widest dtype first, so that all are aligned.

    dtypes     the dtype in which tensors are written, if not their own: NumPy has no bfloat16
    metadata   texts for the header
    """
    written = {name: DTYPES[dtype] for name, dtype in (dtypes or {}).items()}
    codes = {name: written.get(name) or _code(tensor) or "" for name, tensor in tensors.items()}
    order = sorted(tensors, key=lambda name: -np.dtype(_BYTES[codes[name]]).itemsize)
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name in order:
        entry = TensorEntry.of(codes[name], tuple(int(size) for size in tensors[name].shape), end)
        end = entry.stop
        header[name] = {"dtype": entry.code, "shape": entry.shape, "data_offsets": (entry.start, entry.stop)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        array = to_numpy(tensors[name])
        if codes[name] == "BF16":  # converted to float32, whose lower half is zero
            array = (np.asarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        file.write(array.astype(_BYTES[codes[name]], copy=False).tobytes())


def write_model_files(
    folder: str | os.PathLike[str], config: str, tensors: Mapping[str, Array], dtypes: Mapping[str, str] | None = None
) -> None:
    """Write config.json and model.safetensors, each atomically, into a folder that is created if missing.

    dtypes   the dtype in which tensors are written, if not their own
    """
    if not str(folder):
        raise FileError("model-no-name")
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise FileError("model-not-folder", path=str(target))
    if not target.parent.is_dir():
        raise FileError("file-no-folder", path=str(target), folder=str(target.parent))
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise write_error(error, target, 0) from error

    def write_weights(temporary: Path) -> None:
        with temporary.open("wb") as file:
            write_tensors(file, tensors, dtypes)

    write_atomically(target / TENSORS, write_weights, need=sum(tensor.nbytes for tensor in tensors.values()))
    write_bytes(target / CONFIG, config.encode())


def _code(tensor: Array) -> str | None:
    """The format's code for a tensor's dtype in any byte order; None if it is not supported."""
    dtype = tensor.dtype
    return DTYPES.get(dtype.name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch."))


# --- 8-bit integers --------------------------------------------------------------------------------------

STEPS = 127
SCALE = ".scale"
LARGE = 4096
"""Smaller matrices, with fewer numbers, are not quantised: it would save almost nothing."""


def quantise(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """The weights with each large matrix replaced by int8 numbers and scales; the others are unchanged.

    Raises DtypeError if a number is not finite, or if its scale overflows float32.

    >>> found = quantise({"W": np.tile([[254.0, -100.0]], (2, 1024)), "b": np.ones(3)})
    >>> found["W"].dtype.name, found["W"][0, :2].tolist(), found["W.scale"].tolist(), sorted(found)
    ('int8', [127, -50], [2.0, 2.0], ['W', 'W.scale', 'b'])
    """
    found: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if len(tensor.shape) != 2 or tensor.shape[0] * tensor.shape[1] < LARGE:
            found[name] = tensor
            continue
        exact = to_numpy(tensor).astype(np.float64)
        with np.errstate(over="ignore"):
            scale = (np.abs(exact).max(1) / STEPS).astype(np.float32)
        if not np.isfinite(scale).all():
            raise DtypeError("quantise-not-finite", name=name)
        # A row of zeros has scale 0, and so may a row of numbers too small for float32; 0 is nearest in both.
        steps = np.divide(exact, scale[:, None], out=np.zeros_like(exact), where=scale[:, None] > 0)
        found[name] = steps.round().clip(-STEPS, STEPS).astype(np.int8)
        found[name + SCALE] = scale
    return found


class Weights(TensorFile):
    """The weights of a file by name. If any are quantised, all are returned as float32.

    Raises FileError if a quantised matrix has no valid scale.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        stored, shapes = super().dtypes, super().shapes
        self._quantised = {name for name, dtype in stored.items() if dtype == "int8"}
        for name in sorted(self._quantised):
            scale, shape = name + SCALE, shapes[name]
            if len(shape) != 2 or stored.get(scale) != "float32" or shapes[scale] != shape[:1]:
                raise FileError("model-garbled", path=str(path), place=scale)
            values = super().__getitem__(scale)
            if not (np.isfinite(values) & (values >= 0)).all():
                raise FileError("model-garbled", path=str(path), place=scale)
        scales = {name + SCALE for name in self._quantised}
        self._names = {name: None for name in stored if name not in scales}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        tensor = super().__getitem__(name)
        if name in self._quantised:
            return np.multiply(tensor, super().__getitem__(name + SCALE)[:, None], dtype=np.float32)
        return tensor.astype(np.float32, copy=False) if self._quantised else tensor

    def raw(self, name: str) -> np.ndarray:
        """As of a TensorFile; in a file with quantised weights all are float32."""
        return self[name] if self._quantised else super().raw(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def shapes(self) -> dict[str, Shape]:
        """From the header; no weight is read."""
        found = super().shapes
        return {name: found[name] for name in self._names}

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtype in which each weight is returned."""
        found = super().dtypes
        return {name: "float32" if self._quantised else found[name] for name in self._names}

    def arrays(self, dtype: str | None = None) -> dict[str, np.ndarray]:
        """All weights, copied into memory one after the other; in one dtype if given."""
        found = {}
        for name, array in self.items():
            # A dequantised weight is a new array already.
            found[name] = np.array(array, dtype, copy=None if name in self._quantised else True)
            self.release(name)
        return found
