"""A Trace in a safetensors file: arrays as tensors, everything else as one JSON string in the metadata.

    metadata["regard"]   {"format": "regard-trace", "version": 8, "texts": […], "tokens": [[…]], "records": [{…}],
                         "candidates": [[[token, probability], …] for each query], "beams": [[[token, …], score], …],
                         "temperatures": [[T, …], [[log Σ p^(1/T), …] for each query]]}
    tensors              "0.map", "0.top.indices", "0.kept.q", …: the number of the record, then the name of the array;
                         packed where the record says so, see `file_parts`

The same numbers are not stored twice: where the map has a bin for every weight it is the weights, and q and k are left
out, unless v was kept with them; of two equal arrays of a record only the first is stored. What the model wrote is
bounded in size: of a longer text only the last queries keep their candidates, and long tokens are cut.

No pickle. A file is written to a temporary file and renamed, so that an interrupted write leaves the old file.
Everything that is read is validated: an invalid file raises a FileError here, and no other error later.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.arrays import to_numpy
from regard.attention_call import WeightsFromQK
from regard.axes import Shape
from regard.errors import FileError, NotKeptError
from regard.exact_weights import WeightsArray
from regard.files.output import TRACE, check_target, extension_of, reason_of, write_atomically
from regard.files.safe_open import HEAD, UNLIMITED, check_file, check_format, find_excess, open_file
from regard.masks import Mask
from regard.memory import format_bytes
from regard.records import CHECK_MEMORY_FROM, Record
from regard.statistics_table import STATISTICS
from regard.trace.file_parts import Packer, PixelTable, mask_tree
from regard.trace.read_record import FORMAT, KEY, SAME, VERSION, Tensors, opening_in, record_in, texts_in

if TYPE_CHECKING:
    from regard.trace.trace import Candidates, Temperatures, Trace, WrittenBeam


MOST_QUERIES, MOST_CANDIDATES, MOST_BEAMS, MOST_STOPS = 4096, 8, 16, 32
LONGEST_TOKEN = 120


def written_entry(trace: "Trace") -> dict[str, Any]:
    """The JSON of what was written; {} where nothing is known."""
    found: dict[str, Any] = {}
    if trace.candidates is not None:
        dropped = max(0, len(trace.candidates) - MOST_QUERIES)
        listed = [
            [[token[:LONGEST_TOKEN], float(f"{p:.6g}")] for token, p in one[:MOST_CANDIDATES]]
            for one in trace.candidates[dropped:]
        ]
        found["candidates"] = [[] for _ in range(dropped)] + listed
    if trace.temperatures is not None:
        stops, rows = trace.temperatures
        dropped = max(0, len(rows) - MOST_QUERIES)
        kept = [[float(f"{one:.7g}") for one in row[:MOST_STOPS]] for row in rows[dropped:]]
        found["temperatures"] = [list(stops[:MOST_STOPS]), [[] for _ in range(dropped)] + kept]
    if trace.beams is not None:
        found["beams"] = [
            [[token[:LONGEST_TOKEN] for token in tokens[:MOST_QUERIES]], float(score)]
            for tokens, score in trace.beams[:MOST_BEAMS]
        ]
    return found


def candidates_in(tensors: Tensors, about: dict[str, Any]) -> "tuple[Candidates, ...] | None":
    """The candidates of each query. Raises FileError where the file is invalid."""
    found = about.get("candidates")
    if found is None:
        return None
    if not (isinstance(found, list) and all(isinstance(one, list) and all(map(_is_candidate, one)) for one in found)):
        raise tensors.garbled("candidates")
    return tuple(tuple((token, float(p)) for token, p in one) for one in found)


def temperatures_in(tensors: Tensors, about: dict[str, Any]) -> "Temperatures | None":
    """What the candidates are at other temperatures. Raises FileError where the file is invalid."""
    from regard.trace.trace import Temperatures

    found = about.get("temperatures")
    if found is None:
        return None
    if not (isinstance(found, list) and len(found) == 2 and all(isinstance(part, list) for part in found)):
        raise tensors.garbled("temperatures")
    stops, rows = found
    is_valid = all(_is_finite(T) and T > 0 for T in stops) and all(
        isinstance(row, list) and len(row) in (0, len(stops)) and all(map(_is_finite, row)) for row in rows
    )
    if not is_valid:
        raise tensors.garbled("temperatures")
    return Temperatures(tuple(map(float, stops)), tuple(tuple(map(float, row)) for row in rows))


def beams_in(tensors: Tensors, about: dict[str, Any]) -> "tuple[WrittenBeam, ...] | None":
    """The texts that beam search found. Raises FileError where the file is invalid."""
    found = about.get("beams")
    if found is None:
        return None
    if not (isinstance(found, list) and all(map(_is_beam, found))):
        raise tensors.garbled("beams")
    return tuple((tuple(tokens), float(score)) for tokens, score in found)


def _is_candidate(found: Any) -> bool:
    return _is_pair(found) and isinstance(found[0], str) and 0 <= found[1] <= 1


def _is_beam(found: Any) -> bool:
    return _is_pair(found) and isinstance(found[0], list) and all(isinstance(token, str) for token in found[0])


def _is_pair(found: Any) -> bool:
    """Whether it is something with a finite number."""
    return isinstance(found, list) and len(found) == 2 and _is_finite(found[1])


def _is_finite(found: Any) -> bool:
    return type(found) in (int, float) and abs(found) < float("inf")


LONGEST_HEADER = 2**26
MOST_TENSORS = 2**18
MOST_LISTS, MOST_VALUES = 2**20, 2**22
"""Limits of the JSON in the metadata: enough for four texts of a million tokens, or 100,000 records."""

ROUNDED = {name for one in STATISTICS if one.rounded for name in one.file_names}
"""Arrays that may be stored in 16 bits."""


def save(trace: "Trace", path: str | os.PathLike[str], qk: bool = False) -> None:
    """Write the trace; with `qk`, also the q and k of exact weights. Raises FileError and NotKeptError.

    Maps are written in 16 bits; with `qk`, maps that are the weights themselves are written in full.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    plain, metadata = _content(trace, [qk] * len(trace), Packer())
    target = Path(path)
    extension_of(target, TRACE)
    check_target(target)
    need = len(metadata[KEY]) + sum(array.nbytes for array in plain.values())
    write_atomically(
        target, lambda temporary: save_file(plain, temporary, metadata), SafetensorError, need=need, into_streams=True
    )


def trace_bytes(trace: "Trace") -> bytes:
    """The content of a trace file, nothing rounded, with the exact weights of every record that has them.

    They are left out where they can only be stored as more than 2²⁴ weights, as for decoding steps of a long text.
    """
    from safetensors.numpy import save as serialised

    return serialised(*_content(trace, [_is_storable(record) for record in trace], Packer(packs=False)))


def _is_storable(record: Record) -> bool:
    """Whether a file can hold the exact weights of a record."""
    if record.exact is None or record.map_is_exact or isinstance(record.exact, WeightsFromQK | WeightsArray):
        return record.has_weights
    return prod(record.shape) <= CHECK_MEMORY_FROM


def trace_from_bytes(content: bytes, source: str) -> "Trace":
    """The Trace of `trace_bytes`; errors name the `source`."""
    from safetensors.numpy import load

    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return _trace_in(Path(source), InMemory(load(content)), header.get("__metadata__"), len(content))


def _content(trace: "Trace", kept: Sequence[bool], packer: Packer) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The tensors and the metadata of a file. `kept`: for each record, whether it brings exact weights."""
    tensors: dict[str, np.ndarray] = {}
    tokens, pixels = TokenTable(), PixelTable()
    records = [
        _json_entry(record, f"{i}.", tensors, tokens, qk, packer, pixels)
        for i, (record, qk) in enumerate(zip(trace, kept, strict=True))
    ]
    about = {"format": FORMAT, "version": VERSION, "tokens": tokens.rows, "records": records}
    about |= {} if trace.texts is None else {"texts": list(trace.texts)}
    about |= {} if trace.opening is None else {"opening": list(trace.opening)}
    about |= written_entry(trace)
    return {name: _plain(array) for name, array in tensors.items()}, {KEY: _json(about)}


def read_trace(path: str | os.PathLike[str], *, within: Path | None = None) -> "Trace":
    """The Trace that `Trace.save` wrote, with NumPy arrays. Raises FileError with the fault and the fix.

    within   the folder of the run that the file belongs to: no link may lead out of it
    """
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    check_file(source, most=UNLIMITED, within=within)
    try:
        _check_header(source)
        with safe_open(source, framework="np") as file:
            return _trace_in(source, file, file.metadata(), source.stat().st_size)
    except (OSError, SafetensorError, OverflowError, MemoryError) as error:
        raise FileError("trace-unreadable", path=str(source), reason=reason_of(error)) from error
    except RecursionError as error:  # a mask nested a thousand levels deep is invalid
        raise FileError("trace-garbled", path=str(source), place="records") from error


def _trace_in(source: Path, file: Any, metadata: dict[str, str] | None, size: int) -> "Trace":
    """The Trace in an open file."""
    from regard.trace.trace import Trace

    about = _about(source, metadata)
    tensors = Tensors(source, file, size)
    rows = tensors.tokens(about.get("tokens"))
    found = about.get("records")
    if not isinstance(found, list):
        raise tensors.garbled("records")
    records = [record_in(tensors, i, entry, rows) for i, entry in enumerate(found)]
    tensors.check_claimed({f"{i}.{name}" for i, entry in enumerate(found) for name in entry["arrays"]})
    trace = Trace(records)
    trace.texts, trace.opening = texts_in(tensors, about), opening_in(tensors, about)
    trace.candidates, trace.beams = candidates_in(tensors, about), beams_in(tensors, about)
    trace.temperatures = temperatures_in(tensors, about)
    return trace


class InMemory:
    """Tensors in memory, read as `safe_open` reads those of a file."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._tensors = tensors

    def keys(self) -> Iterable[str]:
        return self._tensors.keys()

    def get_tensor(self, name: str) -> np.ndarray:
        return self._tensors[name]

    def get_slice(self, name: str) -> "InMemorySlice":
        return InMemorySlice(self._tensors[name])


@dataclass(frozen=True, slots=True, eq=False)
class InMemorySlice:
    """A tensor of which only the shape is read."""

    array: np.ndarray

    def get_shape(self) -> list[int]:
        return list(self.array.shape)


def _check_header(path: Path) -> None:
    """Raise FileError for another format, and for a header that would take far more memory than its size."""
    with open_file(path, most=UNLIMITED) as file:
        size = os.fstat(file.fileno()).st_size
        check_format(path, file.read(HEAD), "trace")
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if LONGEST_HEADER < length <= size:
            most = format_bytes(LONGEST_HEADER)
            raise FileError("trace-large", path=str(path), place="header", found=format_bytes(length), most=most)
        header = file.read(min(length, LONGEST_HEADER))
    if found := find_excess(header, MOST_TENSORS + 2, 2 * MOST_TENSORS, 16 * MOST_TENSORS):
        raise FileError("trace-large", path=str(path), **found._asdict())


class TokenTable:
    """The lists of tokens, each stored once, even if many records share it."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}

    def numbers(self, tokens: tuple[tuple[str, ...], ...] | None) -> list[int] | None:
        if tokens is None:
            return None
        for row in tokens:
            if row not in self._numbers:
                self._numbers[row] = len(self.rows)
                self.rows.append(row)
        return [self._numbers[row] for row in tokens]


def _json_entry(
    record: Record,
    place: str,
    tensors: dict[str, np.ndarray],
    tokens: TokenTable,
    qk: bool,
    packer: Packer,
    pixels: PixelTable,
) -> dict[str, Any]:
    """The record as JSON; its arrays go to `tensors`."""
    arrays = {name: x for one in STATISTICS for name, x in one.arrays(getattr(record, one.name)).items()}
    arrays |= {} if record.ids is None else {"ids": record.ids}
    if record.padding is not None:
        arrays |= {"text.queries": record.padding.queries, "text.keys": record.padding.keys}
    images, image_arrays = pixels.entries(record.images, place)
    arrays |= image_arrays
    kept, kept_arrays = _kept(record) if qk else (None, {})
    arrays = {name: to_numpy(array) for name, array in arrays.items() if array is not None} | kept_arrays
    same = _duplicates(arrays)
    arrays = {name: array for name, array in arrays.items() if name not in same}
    packed = {}
    for name, array in arrays.items():
        rounded = name in ROUNDED and not (qk and record.map_is_exact)
        tensors[place + name], about = packer.pack(array, rounded=rounded)
        if about is not None:
            packed[name] = about
    return {
        "name": record.name,
        "kind": record.kind,
        "shape": list(record.shape),
        "arrays": list(arrays),
        "queries": tokens.numbers(record.query_tokens),
        "keys": tokens.numbers(record.key_tokens),
        "kept": kept,
        **({"packed": packed} if packed else {}),
        **({"same": same} if same else {}),
        **({} if record.written is None else {"written": tokens.numbers(record.written)}),
        **({} if record.step is None else {"step": list(record.step)}),
        **({} if record.prompt is None else {"prompt": record.prompt}),
        **({"fused": True} if record.fused else {}),
        **({"rest": record.rest} if record.rest else {}),
        **({"images": images} if images else {}),
    }


def _duplicates(arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Arrays that are equal to another one, with the name of that one."""
    pairs = ((name, other) for name, other in SAME.items() if name in arrays and other in arrays)
    return {name: other for name, other in pairs if _is_equal(arrays[name], arrays[other])}


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _kept(record: Record) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """What exact weights are computed from, as JSON and arrays; only the mask where the map is the weights."""
    exact = record.exact
    if record.map_is_exact and not (isinstance(exact, WeightsFromQK) and exact.v is not None):
        known = None if exact is None else exact.known_mask
        return (None, {}) if known is None else _kept_mask(known.mask, known.lead)
    if isinstance(exact, WeightsFromQK):
        return _kept_qk(exact)
    if exact is None or not (isinstance(exact, WeightsArray) or prod(record.shape) <= CHECK_MEMORY_FROM):
        raise NotKeptError("weights-not-kept", name=record.name, T=record.shape[-2], S=record.shape[-1])
    # Also of a decoding step, which uses keys of earlier calls: its row of weights is smaller than those keys.
    return {}, {"kept.weights": to_numpy(record.weights())}


def _kept_qk(exact: WeightsFromQK) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    arrays = {"kept.q": to_numpy(exact.q), "kept.k": to_numpy(exact.k), "kept.lse": to_numpy(exact.lse)}
    arrays |= {} if exact.bias is None else {"kept.bias": to_numpy(exact.bias)}
    arrays |= {} if exact.v is None else {"kept.v": to_numpy(exact.v)}
    about, masks = _kept_mask(exact.mask, exact.lead)
    about |= {"scale": float(exact.scale), "softcap": None if exact.softcap is None else float(exact.softcap)}
    return about, arrays | masks


def _kept_mask(mask: Mask | None, lead: Shape) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The mask, which cannot be recovered from the weights alone."""
    if mask is None:
        return {"mask": None}, {}
    tree, parts = mask_tree(mask)
    return {"mask": tree, "lead": list(lead)}, {f"kept.mask.{i}": part for i, part in enumerate(parts)}


def _about(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    """The JSON of the metadata, if the file is a trace file of a known version."""
    if not metadata or KEY not in metadata:
        raise FileError("trace-not-ours", path=str(path))
    content = metadata[KEY].encode()
    if found := find_excess(content, MOST_TENSORS, MOST_LISTS, MOST_VALUES):
        raise FileError("trace-large", path=str(path), **found._asdict())
    try:
        about = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError("trace-garbled", path=str(path), place=f"metadata[{KEY!r}]") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileError("trace-not-ours", path=str(path))
    version = about.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise FileError("trace-garbled", path=str(path), place="version")
    if version > VERSION:
        raise FileError("trace-newer", path=str(path), found=version, known=VERSION)
    return about


def _plain(array: np.ndarray) -> np.ndarray:
    """The array in native byte order and contiguous, as safetensors requires."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _json(about: dict[str, Any]) -> str:
    text = json.dumps(about, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as byte-level tokenizers produce them, needs an escape
        return json.dumps(about, allow_nan=False)
    return text
