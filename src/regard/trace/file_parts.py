"""The parts of a trace file: packed arrays, masks and pictures. This module does not open files.

An array is packed by zlib byte by byte: first the lowest byte of every number, then the next, so that it finds the
signs, exponents and zeros that many numbers share. In 16 bits a weight w is the integer nearest to 65535 √w: its error
is at most 0.000016 √w, a weight of exactly 0 or 1 is unchanged, and no other weight becomes 0, which would mean masked.
Half floats would have errors of up to 0.00024. The unpacked size is bounded by the size of the file, not by the sizes
that the file claims.

A mask is a JSON tree whose arrays are referred to by number. A rule is stored by name; no name leads to an import.
Pixels that several records share are stored with the first of them.
"""

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.arrays import is_integer, to_numpy
from regard.errors import RegardError
from regard.images import RecordImage, record_image
from regard.masks import Mask
from regard.masks.bound import And, Not, Or
from regard.masks.rules import Band, Dense, Keys, Prefix, Rule, Segments

if TYPE_CHECKING:
    from regard.trace.read_record import FourSizes, Tensors


STEPS = 65535
PACK_FROM = 512
"""Bytes below which an array is not packed."""
MOST_BYTES = 2**28
"""Bytes that the packed arrays of a file may always have when unpacked."""
MOST_RATIO = 64
"""The unpacked arrays may also have this many times the bytes of the file, if that is more."""
LEVEL = 1
"""The level of zlib: higher levels gain 3 % at most and take two or three times as long."""
_KINDS = "fiub"


class Packer:
    """Packs the arrays of one file; leaves an array unpacked where a reader would refuse the unpacked size.

    packs   False leaves every array as it is, for a trace that is sent and not stored
    """

    def __init__(self, packs: bool = True) -> None:
        self._packs = packs
        self._unpacked = self._stored = 0

    def pack(self, array: np.ndarray, *, rounded: bool = False) -> tuple[np.ndarray, dict[str, Any] | None]:
        """The array to store, and its description for the reader; None for an array that is not packed.

        rounded     whether weights may be written in 16 bits
        """
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if not self._packs or plain.nbytes < PACK_FROM or plain.dtype.kind not in _KINDS:
            return array, None
        in_16_bits = rounded and are_weights(plain)
        packed = zlib.compress(_by_bytes(codes_of(plain) if in_16_bits else plain), LEVEL)
        unpacked, stored = self._unpacked + plain.nbytes, self._stored + len(packed)
        if len(packed) >= plain.nbytes or unpacked > max(MOST_BYTES, MOST_RATIO * stored):
            return array, None
        self._unpacked, self._stored = unpacked, stored
        about: dict[str, Any] = {"dtype": plain.dtype.str, "shape": list(plain.shape)}
        return np.frombuffer(packed, np.uint8), about | ({"bits": 16} if in_16_bits else {})


class Unpacker:
    """Unpacks the arrays of one file of `size` bytes. Raises ValueError for an invalid array."""

    def __init__(self, size: int) -> None:
        self._left = max(MOST_BYTES, MOST_RATIO * size)

    def unpack(self, stored: np.ndarray, about: Any) -> np.ndarray:
        """The array that was packed."""
        dtype, shape, in_16_bits = _validated(about)
        count = math.prod(shape)
        self._left -= count * dtype.itemsize
        if stored.dtype != np.uint8 or stored.ndim != 1 or self._left < 0:
            raise ValueError("larger than the file allows")
        inner = np.dtype("<u2") if in_16_bits else dtype
        opener = zlib.decompressobj()
        try:
            raw = opener.decompress(stored.tobytes(), count * inner.itemsize + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if len(raw) != count * inner.itemsize or not opener.eof:
            raise ValueError("unpacked to another size")
        planes = np.frombuffer(raw, np.uint8).reshape(inner.itemsize, count)
        found = np.ascontiguousarray(planes.T).reshape(-1).view(inner).reshape(shape)
        if in_16_bits:
            return weights_of(found, dtype)
        return found.astype(dtype.newbyteorder("="), copy=False)


def are_weights(array: np.ndarray) -> bool:
    """Whether all numbers are from 0 to 1, with a tolerance for rounding."""
    return array.dtype.kind == "f" and bool(((array >= 0) & (array <= 1 + 1e-6)).all())


def codes_of(weights: np.ndarray) -> np.ndarray:
    """Weights in 16 bits.

    >>> codes_of(np.array([0.0, 1e-30, 0.25, 1.0])).tolist()
    [0, 1, 32768, 65535]
    """
    roots = np.rint(STEPS * np.sqrt(np.minimum(weights.astype(np.float64), 1)))
    return np.where(weights > 0, np.maximum(roots, 1), 0).astype("<u2")


def weights_of(codes: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """From 16 bits to weights."""
    return np.square(codes / STEPS).astype(dtype.newbyteorder("="))


def _by_bytes(array: np.ndarray) -> bytes:
    """All first bytes, then all second bytes, and so on."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T.tobytes()


def _validated(about: Any) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """dtype, shape and whether 16 bits are used, from the validated description in a file."""
    if not isinstance(about, dict) or set(about) - {"bits"} != {"dtype", "shape"}:
        raise ValueError("invalid description")
    name, shape, bits = about["dtype"], about["shape"], about.get("bits")
    if not isinstance(name, str) or name not in _NAMES or bits not in (None, 16):
        raise ValueError("unknown dtype")
    if not isinstance(shape, list) or len(shape) > 8 or not all(_is_size(size) for size in shape):
        raise ValueError("invalid shape")
    dtype = np.dtype(name)
    if bits is not None and dtype.kind != "f":
        raise ValueError("unknown dtype")
    return dtype, tuple(shape), bits is not None


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**48


_NAMES = {
    np.dtype(kind).newbyteorder("<").str
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
}


DEEPEST, MOST_RULES = 64, 1024
LARGEST = 2**62
"""The largest number in a rule: larger than any position, and small enough that NumPy can add one to it."""


class MaskTreeError(ValueError):
    """A tree that is no mask; the reader of the file raises the error for the user."""


def mask_tree(mask: Mask) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The mask as JSON, and the arrays that its numbers refer to.

    >>> mask_tree(Mask.prefix(2))
    ({'name': 'Mask.prefix(2)', 'rule': {'is': 'prefix', 'count': 2}}, [])
    """
    arrays: list[np.ndarray] = []

    def number(array: Any) -> int:
        arrays.append(to_numpy(array))
        return len(arrays) - 1

    return {"name": mask.name, "rule": _tree(mask.rule, number)}, arrays


def _tree(rule: Rule, number: Callable[[Any], int]) -> dict[str, Any]:
    match rule:
        case Band(left=left, right=right, from_first=from_first):
            return {"is": "band", "left": left, "right": right, "from_first": from_first}
        case Prefix(count=count) if isinstance(count, int):
            return {"is": "prefix", "count": count}
        case Prefix(count=counts):
            return {"is": "prefix", "counts": number(counts)}
        case Keys(keep=keep):
            return {"is": "keys", "keep": number(keep)}
        case Segments(keys=keys, queries=queries):
            return {
                "is": "segments",
                "keys": number(keys),
                "queries": None if queries is None else number(queries),
            }
        case Dense(allowed=allowed, per_sample=per_sample):
            return {"is": "dense", "allowed": number(allowed), "per_sample": per_sample}
        case Not(rule=inner):
            return {"is": "not", "rule": _tree(inner, number)}
        case Or(rules=rules):
            return {"is": "either", "rules": [_tree(part, number) for part in rules]}
        case And(rules=rules):
            return {"is": "both", "rules": [_tree(part, number) for part in rules]}
    raise AssertionError(f"a rule without a name in the file format: {type(rule).__name__}")


def mask_of(tree: Any, array: Callable[[int], np.ndarray]) -> Mask:
    """The mask that `mask_tree` wrote; MaskTreeError where the tree is invalid."""
    if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
        raise MaskTreeError
    _check_size(tree.get("rule"))
    return Mask(_rule(tree.get("rule"), array), tree["name"])


def _check_size(tree: Any) -> None:
    """Raise MaskTreeError where rules are nested deeper, or are more, than in any real mask."""
    level, count = [tree], 0
    for _ in range(DEEPEST):
        level = [part for one in level if isinstance(one, dict) for part in (one.get("rule"), *_list(one.get("rules")))]
        level = [part for part in level if isinstance(part, dict)]
        count += len(level)
        if not level:
            return
        if count > MOST_RULES:
            break
    raise MaskTreeError


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _rule(tree: Any, array: Callable[[int], np.ndarray]) -> Rule:
    def numbered(key: str, kinds: str, axes: int) -> np.ndarray:
        found = array(_integer(tree.get(key)))
        if found.dtype.kind not in kinds or found.ndim < axes:
            raise MaskTreeError
        return found

    match tree:
        case {"is": "band", "left": left, "right": right, "from_first": bool(from_first)}:
            return Band(_integer_or_none(left), _integer_or_none(right), from_first)
        case {"is": "prefix", "count": count}:
            return Prefix(_integer(count))
        case {"is": "prefix"}:
            return Prefix(numbered("counts", "iub", 1))
        case {"is": "keys"}:
            return Keys(numbered("keep", "b", 1))
        case {"is": "segments", "queries": queries}:
            ids = None if queries is None else numbered("queries", "iub", 1)
            return Segments(numbered("keys", "iub", 1), ids)
        case {"is": "dense", "per_sample": bool(per_sample)}:
            return Dense(numbered("allowed", "b", 3 if per_sample else 2), per_sample)
        case {"is": "not", "rule": inner}:
            return Not(_rule(inner, array))
        case {"is": "both" | "either" as name, "rules": [*rules]} if rules:
            combined = And if name == "both" else Or
            return combined(tuple(_rule(part, array) for part in rules))
    raise MaskTreeError


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise MaskTreeError
    return value


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else _integer(value)


_FIELDS = {"grid", "first", "side", "name"}
_OPTIONAL = {"pixels", "positions", "sample", "number", "crop", "frame", "extra"}
_COUNTS = ("sample", "number", "crop", "frame")
_TENSOR = re.compile(r"\d+\.(image|images\.\d+)")


class PixelTable:
    """Where the pixels of each picture are stored, by identity."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []

    def entries(
        self, images: tuple[RecordImage, ...], place: str
    ) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
        """The JSON of the pictures of a record, and its tensors. `place` is the start of their names."""
        found, arrays = [], {}
        for at, image in enumerate(images):
            about: dict[str, Any] = {"grid": list(image.grid), "first": image.first, "side": image.side}
            about |= {"name": image.name}
            about |= {name: getattr(image, name) for name in _COUNTS if getattr(image, name) not in (None, 0)}
            # A sample, crop or frame of 0 differs from None.
            about |= {name: 0 for name in ("sample", "crop", "frame") if getattr(image, name) == 0}
            about |= {"extra": list(image.extra)} if image.extra else {}
            if image.pixels is not None:
                name = self._names.get(id(image.pixels))
                if name is None:
                    arrays[f"images.{at}"] = _array(image.pixels)
                    name = self._names[id(image.pixels)] = f"{place}images.{at}"
                    self._kept.append(image.pixels)
                about["pixels"] = name
            if image.positions is not None:
                arrays[f"images.{at}.positions"] = image.patches.astype(np.int32)
                about["positions"] = True
            found.append(about)
        return found, arrays


def _array(pixels: np.ndarray | bytes) -> np.ndarray:
    return np.frombuffer(pixels, np.uint8) if isinstance(pixels, bytes) else pixels


def images_in(tensors: "Tensors", own: str, entry: dict[str, Any], shape: "FourSizes") -> tuple[RecordImage, ...]:
    """The pictures of a record; FileError where one is invalid."""
    found = entry.get("images", [])
    if entry.get("image") is not None:  # a file of version 6, with one picture
        about = entry["image"]
        found = [about | {"pixels": f"{own}image"}] if isinstance(about, dict) else None
    if not isinstance(found, list):
        raise tensors.garbled(f"{own}images")
    return tuple(_image(tensors, own, at, about, shape) for at, about in enumerate(found))


def _image(tensors: "Tensors", own: str, at: int, about: Any, shape: "FourSizes") -> RecordImage:
    place = f"{own}images.{at}"
    if not _is_valid(about):
        raise tensors.garbled(place)
    pixels = tensors.get(about["pixels"], kinds="u") if "pixels" in about else None
    positions = tensors.get(f"{place}.positions", kinds="i") if about.get("positions") else None
    try:
        given = _UNKNOWN if pixels is None else pixels.tobytes() if pixels.ndim == 1 else pixels
        image = record_image(given, about["grid"], about["first"], about["side"], about["name"])
        rows, cols = image.grid
        if positions is not None and (positions.shape != (rows * cols,) or positions.min(initial=0) < -1):
            raise tensors.garbled(f"{place}.positions")
        counts = {name: about[name] for name in _COUNTS if name in about}
        image = replace(
            image,
            pixels=None if pixels is None else image.pixels,
            positions=positions,
            extra=tuple(about.get("extra", ())),
            **counts,
        )
        image.check(*shape[2:], B=shape[0])
    except RegardError as error:
        raise tensors.garbled(place) from error
    return image


_UNKNOWN = np.zeros((1, 1, 3), np.uint8)


def _is_valid(about: Any) -> bool:
    if not isinstance(about, dict) or set(about) - _OPTIONAL != _FIELDS or not isinstance(about["name"], str):
        return False
    extra, pixels = about.get("extra", []), about.get("pixels", "0.image")
    return (
        isinstance(extra, list)
        and all(isinstance(name, str) for name in extra)
        and isinstance(pixels, str)
        and _TENSOR.fullmatch(pixels) is not None
        and about.get("positions", True) is True
        and all(is_integer(about.get(name, 0)) and about.get(name, 0) >= 0 for name in _COUNTS)
    )
