"""Reading one record of a trace file: every size and type is validated.

This module checks the content of records; `regard.trace.file` opens the file.
"""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from regard.attention_call import WeightsFromQK
from regard.axes import Shape, split_lead
from regard.errors import FileError, RegardError
from regard.exact_weights import ExactWeights, KnownMask, WeightsArray
from regard.files.safe_open import LARGEST_SIZE, MOST_AXES
from regard.masks import BoundMask, Mask
from regard.masks.padding import Padding
from regard.records import DecodeStep, Record, Rest, Top
from regard.statistics_table import STATISTICS, Statistic
from regard.trace.file_parts import MaskTreeError, Unpacker, images_in, mask_of
from regard.trace.from_weights import KINDS
from regard.trace.pooling import is_binning

FORMAT, VERSION, KEY = "regard-trace", 8, "regard"
"""A reader refuses unknown fields, so a new field of records needs a new version; a missing field is None.

5 has `max_score`, 6 `kept.v` and `image`, 7 `images` in its place, 8 `outputs`.
"""

_ENTRY = {"name", "kind", "shape", "arrays", "queries", "keys", "kept"}
_OPTIONAL = {"step", "prompt", "fused", "rest", "written", "packed", "same", "image", "images"}
_ARRAYS = re.compile(
    "|".join(re.escape(name) for one in STATISTICS for name in one.file_names)
    + r"|ids|image|images\.\d+(\.positions)?|text\.(queries|keys)|kept\.(weights|q|k|v|lse|bias|mask\.\d+)"
)
SAME = {"kept.lse": "lse"}
"""Arrays that may be stored as a reference to another array of the record."""

MOST_HEADS = 2**12
MOST_UNSTORED = 2**16
"""Samples × heads of all records for which the file stores no number."""
MOST_EMPTY = 2**27
"""The product of the other sizes of an array or a record that has a size of 0."""

TokenTable = list[tuple[str, ...]]
FourSizes = tuple[int, int, int, int]


class Tensors:
    """The tensors of an open file, read by name and shape."""

    def __init__(self, path: Path, file: Any, size: int) -> None:
        self.path = path
        self._file = file
        self._names = set(file.keys())
        self._unstored = 0
        self._unpacker = Unpacker(size)
        self._packed: dict[str, Any] = {}
        self._same: dict[str, str] = {}

    def add_storage(self, own: str, entry: dict[str, Any], place: str) -> None:
        """Read how the arrays of a record are stored: which are packed, and which refer to another array."""
        packed, same = entry.get("packed", {}), entry.get("same", {})
        if not isinstance(packed, dict) or not set(packed) <= set(entry["arrays"]):
            raise self.garbled(f"{place}.packed")
        if not isinstance(same, dict) or not all(SAME.get(name) == of for name, of in same.items()):
            raise self.garbled(f"{place}.same")
        self._packed |= {own + name: about for name, about in packed.items()}
        self._same |= {own + name: own + of for name, of in same.items()}

    def get(self, name: str, kinds: str = "f") -> np.ndarray:
        """The tensor `name`, whose dtype must be of one of the NumPy kinds."""
        name = self._same.get(name, name)
        if name not in self._names:
            raise FileError("trace-tensor-missing", path=str(self.path), tensor=name)
        self._check_shape(name)
        try:
            found: np.ndarray = self._file.get_tensor(name)
        except (TypeError, AttributeError, KeyError) as error:  # a dtype that NumPy does not have
            raise FileError("trace-tensor-dtype", path=str(self.path), tensor=name, found="?") from error
        if name in self._packed:
            try:
                found = self._unpacker.unpack(found, self._packed[name])
            except ValueError as error:
                raise self.garbled(name) from error
        if found.dtype.kind not in kinds:
            raise FileError("trace-tensor-dtype", path=str(self.path), tensor=name, found=found.dtype)
        return found

    def _check_shape(self, name: str) -> None:
        """Raise FileError for sizes that NumPy cannot represent, which an empty tensor may claim."""
        try:
            shape = self._file.get_slice(name).get_shape()
        except (OverflowError, TypeError) as error:
            raise self.large(name, "≥ 2⁶³", LARGEST_SIZE) from error
        if len(shape) > MOST_AXES:
            raise FileError("trace-tensor-axes", path=str(self.path), tensor=name, found=len(shape), most=MOST_AXES)
        if max(shape, default=0) > LARGEST_SIZE:
            raise self.large(name, max(shape), LARGEST_SIZE)
        self._check_empty(name, shape)

    def check_stored(self, place: str, shape: FourSizes, numbers: int) -> None:
        """Raise where a record claims far more heads or samples than the `numbers` that the file stores for it."""
        B, H, *_ = shape
        if H > MOST_HEADS:
            raise self.large(f"{place}.shape, H", H, MOST_HEADS)
        self._unstored += max(0, max(1, B) * max(1, H) - numbers)
        if self._unstored > MOST_UNSTORED:
            raise self.large(f"{place}.shape, B × H", B * H, MOST_UNSTORED)
        self._check_empty(f"{place}.shape", shape)

    def _check_empty(self, place: str, shape: Iterable[int]) -> None:
        """Raise for an empty array with huge other sizes."""
        others = math.prod(size for size in shape if size)
        if not all(shape) and others > MOST_EMPTY:
            raise self.large(place, others, MOST_EMPTY)

    def large(self, place: str, found: object, most: int) -> FileError:
        """The error for a claimed size beyond what is stored."""
        return FileError("trace-large", path=str(self.path), place=place, found=found, most=most)

    def shaped(self, name: str, *wanted: int | None, kinds: str = "f") -> np.ndarray:
        """The tensor `name` of a given shape; None means any size."""
        name = self._same.get(name, name)
        found = self.get(name, kinds)
        fits = found.ndim == len(wanted) and all(
            size is None or size == have for size, have in zip(wanted, found.shape, strict=True)
        )
        if not fits:
            text = "(" + ", ".join("…" if size is None else str(size) for size in wanted) + ")"
            raise FileError("trace-tensor-shape", path=str(self.path), tensor=name, found=found.shape, wanted=text)
        return found

    def check_claimed(self, wanted: set[str]) -> None:
        """Raise where the file contains a tensor that no record names."""
        if self._names - wanted:
            raise self.garbled(min(self._names - wanted))

    def garbled(self, place: str) -> FileError:
        """The error for an invalid value in the JSON."""
        return FileError("trace-garbled", path=str(self.path), place=place)

    def tokens(self, rows: Any) -> TokenTable:
        """The table of token lists."""
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise self.garbled("tokens")
        if not all(isinstance(token, str) for row in rows for token in row):
            raise self.garbled("tokens")
        return [tuple(row) for row in rows]


def record_in(tensors: Tensors, number: int, entry: Any, rows: TokenTable) -> Record:
    """Record `number` from its JSON entry; FileError where the entry is invalid."""
    place = f"records[{number}]"
    if not isinstance(entry, dict) or set(entry) - _OPTIONAL != _ENTRY:
        raise tensors.garbled(place)
    if not isinstance(entry["name"], str) or entry["kind"] not in KINDS:
        raise tensors.garbled(place)
    shape, names = entry["shape"], entry["arrays"]
    if not isinstance(shape, list) or len(shape) != 4 or not all(_is_size(size) for size in shape):
        raise tensors.garbled(f"{place}.shape")
    for size in shape:
        if size > LARGEST_SIZE:
            raise tensors.large(f"{place}.shape", size if size < 2**63 else "≥ 2⁶³", LARGEST_SIZE)
    if not isinstance(names, list) or not all(isinstance(name, str) and _ARRAYS.fullmatch(name) for name in names):
        raise tensors.garbled(f"{place}.arrays")
    if not isinstance(entry.get("fused", False), bool):
        raise tensors.garbled(f"{place}.fused")
    if entry.get("rest", "") not in get_args(Rest):
        raise tensors.garbled(f"{place}.rest")
    B, H, T, S = shape
    own = f"{number}."
    tensors.add_storage(own, entry, place)
    statistics: dict[str, Any] = {
        one.name: _statistic(tensors, own, one, (B, H, T, S)) if one.file_names[0] in names else None
        for one in STATISTICS
    }
    record = Record(
        shape=(B, H, T, S),
        name=entry["name"],
        kind=entry["kind"],
        fused=entry.get("fused", False),
        rest=entry.get("rest", ""),
        **statistics,
        query_tokens=_tokens(tensors, entry, "queries", place, rows, B, T),
        key_tokens=_tokens(tensors, entry, "keys", place, rows, B, S),
        written=_tokens(tensors, entry, "written", place, rows, B, T),
        step=_step(tensors, entry.get("step"), place, B),
        ids=tensors.shaped(f"{own}ids", B, T, kinds="iu") if "ids" in names else None,
        prompt=_prompt(tensors, entry.get("prompt"), place, T),
        padding=_padding(tensors, own, names, (B, H, T, S)),
        exact=_exact(tensors, own, entry, (B, H, T, S), statistics["map"]),
        images=images_in(tensors, own, entry, (B, H, T, S)),
    )
    tensors.check_stored(place, (B, H, T, S), _numbers(record))
    return record


def _numbers(record: Record) -> int:
    """The number of elements of the largest array of the record."""
    arrays = [array for one in STATISTICS for array in one.arrays(getattr(record, one.name)).values()]
    held = () if record.exact is None else record.exact.arrays
    return max((array.size for array in (*arrays, *held)), default=0)


def texts_in(tensors: Tensors, about: dict[str, Any]) -> tuple[str, str] | None:
    """The text that was read and the text that was generated."""
    found = about.get("texts")
    if found is None:
        return None
    if not (isinstance(found, list) and len(found) == 2 and all(isinstance(text, str) for text in found)):
        raise tensors.garbled("texts")
    return found[0], found[1]


def opening_in(tensors: Tensors, about: dict[str, Any]) -> tuple[str, int] | None:
    """The record name and the head that views show first; views check that they exist."""
    found = about.get("opening")
    if found is None:
        return None
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[0], str) and _is_size(found[1])):
        raise tensors.garbled("opening")
    return found[0], found[1]


def _step(tensors: Tensors, found: Any, place: str, B: int) -> DecodeStep | None:
    if found is None:
        return None
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[1], list) and len(found[1]) in (0, B)):
        raise tensors.garbled(f"{place}.step")
    if not all(_is_size(number) and number <= LARGEST_SIZE for number in (found[0], *found[1])):
        raise tensors.garbled(f"{place}.step")
    return DecodeStep(found[0], tuple(found[1]))


def _prompt(tensors: Tensors, found: Any, place: str, T: int) -> int | None:
    if found is not None and not (_is_size(found) and found <= T):
        raise tensors.garbled(f"{place}.prompt")
    return found


def _padding(tensors: Tensors, own: str, names: list[str], shape: FourSizes) -> Padding | None:
    B, _, T, S = shape
    queries = tensors.shaped(f"{own}text.queries", B, T, kinds="b") if "text.queries" in names else None
    keys = tensors.shaped(f"{own}text.keys", B, S, kinds="b") if "text.keys" in names else None
    return None if queries is None and keys is None else Padding(queries, keys)


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


def _statistic(tensors: Tensors, own: str, one: Statistic, shape: FourSizes) -> Any:
    if one.name in _CHECKED:
        return _CHECKED[one.name](tensors, own, shape)
    return tensors.shaped(own + one.file_names[0], *shape[:2], *one.known_sizes(*shape[2:]))


def _map(tensors: Tensors, own: str, shape: FourSizes) -> np.ndarray:
    B, H, T, S = shape
    found = tensors.shaped(f"{own}map", B, H, None, None)
    if not (is_binning(T, found.shape[2]) and is_binning(S, found.shape[3])):
        raise FileError(
            "trace-tensor-shape",
            path=str(tensors.path),
            tensor=f"{own}map",
            found=found.shape,
            wanted=f"({B}, {H}, ≤ {T}, ≤ {S})",
        )
    return found


def _top(tensors: Tensors, own: str, shape: FourSizes) -> Top:
    B, H, T, S = shape
    indices = tensors.shaped(f"{own}top.indices", B, H, T, None, kinds="iu")
    if indices.size and not (indices.min() >= 0 and indices.max() < S):
        raise tensors.garbled(f"{own}top.indices")
    return Top(indices, tensors.shaped(f"{own}top.weights", *indices.shape))


_CHECKED = {"map": _map, "top": _top}
"""Statistics whose numbers are checked too, not only their sizes."""


def _tokens(
    tensors: Tensors, entry: dict[str, Any], side: str, place: str, rows: TokenTable, samples: int, length: int
) -> tuple[tuple[str, ...], ...] | None:
    numbers = entry.get(side)
    if numbers is None:
        return None
    fits = isinstance(numbers, list) and len(numbers) in (1, samples)
    if not fits or not all(_is_size(number) and number < len(rows) for number in numbers):
        raise tensors.garbled(f"{place}.{side}")
    if any(len(rows[number]) != length for number in numbers):
        raise tensors.garbled(f"{place}.{side}")
    return tuple(rows[number] for number in numbers)


# --- what exact weights are computed from ----------------------------------------------------------------


def _exact(tensors: Tensors, own: str, entry: dict[str, Any], shape: FourSizes, map: Any) -> ExactWeights | None:
    about, names = entry["kept"], entry["arrays"]
    if "kept.weights" in names:
        return WeightsArray(tensors.shaped(f"{own}kept.weights", *shape))
    if about is None:
        return None
    if not isinstance(about, dict) or "mask" not in about:
        raise tensors.garbled(f"{own}kept")
    known, bound = KnownMask(None, shape[:2]), None
    if about["mask"] is not None:
        lead = _lead(tensors, own, about, shape)
        mask, bound = _mask(tensors, own, about["mask"], (*lead, *shape[2:]))
        known = KnownMask(mask, lead)
    if "kept.q" in names:
        return _exact_from_qk(tensors, own, entry, shape, known, bound)
    if map is None or set(about) - {"mask", "lead"}:  # without q the map must be the weights
        raise tensors.garbled(f"{own}kept")
    return WeightsArray(map, known) if map.shape == shape else None


def _exact_from_qk(
    tensors: Tensors, own: str, entry: dict[str, Any], shape: FourSizes, known: KnownMask, bound: BoundMask | None
) -> WeightsFromQK:
    about, names, (B, H, T, S) = entry["kept"], entry["arrays"], shape
    if not _are_numbers(about):
        raise tensors.garbled(f"{own}kept")
    q = tensors.shaped(f"{own}kept.q", B, H, T, None)
    if not q.shape[-1]:  # heads of width 0 are invalid, and would let the file claim any length
        raise tensors.garbled(f"{own}kept.q")
    k = tensors.shaped(f"{own}kept.k", B, None, S, q.shape[-1])
    lse = tensors.shaped(f"{own}kept.lse", B, H, T)
    G = k.shape[1]
    bias = tensors.shaped(f"{own}kept.bias", None, None, None, None) if "kept.bias" in names else None
    v = tensors.shaped(f"{own}kept.v", B, G, S, None) if "kept.v" in names else None
    broadcasts = bias is None or all(size in (1, full) for size, full in zip(bias.shape, shape, strict=True))
    if (G == 0 or H % G) and G != H:
        raise tensors.garbled(f"{own}kept.k")
    if not broadcasts:
        raise tensors.garbled(f"{own}kept.bias")
    return WeightsFromQK(
        q=q,
        k=k,
        lse=lse,
        scale=about["scale"],
        lead=known.lead,
        compute=_rectangle,
        mask=known.mask,
        bound=bound,
        bias=bias,
        softcap=about["softcap"],
        v=v,
    )


def _rectangle(*arguments: Any, **options: Any) -> np.ndarray:
    from regard.kernels.blocked import rectangle  # not needed to read a file

    return rectangle(*arguments, **options)


def _lead(tensors: Tensors, own: str, about: dict[str, Any], shape: Shape) -> Shape:
    """The caller's axes before T and S, to which the mask applies."""
    lead = about.get("lead")
    if not isinstance(lead, list) or len(lead) > MOST_AXES - 2 or not all(_is_size(size) for size in lead):
        raise tensors.garbled(f"{own}kept.lead")
    if split_lead(tuple(lead)) != shape[:2]:
        raise tensors.garbled(f"{own}kept.lead")
    return tuple(lead)


def _mask(tensors: Tensors, own: str, tree: Any, scores: Shape) -> tuple[Mask, BoundMask]:
    *lead, T, S = scores
    try:
        mask = mask_of(tree, lambda number: tensors.get(f"{own}kept.mask.{number}", "iub"))
        return mask, mask.bind(tuple(lead), T, S)
    except FileError:
        raise
    except (MaskTreeError, RegardError) as error:
        raise tensors.garbled(f"{own}kept.mask") from error


def _are_numbers(about: dict[str, Any]) -> bool:
    scale, softcap = about.get("scale"), about.get("softcap", "none given")
    fits = softcap is None or (isinstance(softcap, float) and math.isfinite(softcap) and softcap > 0)
    return fits and isinstance(scale, float) and math.isfinite(scale)
