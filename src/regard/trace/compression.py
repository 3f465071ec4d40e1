"""Compression of the arrays in a trace file: zlib for all of them, and 16 bits for weights on request.

An array is packed byte by byte: first the lowest byte of every number, then the next, so that zlib finds the signs,
exponents and zeros that many numbers share. In 16 bits a weight w is the integer nearest to 65535 √w: its error is at
most 0.000016 √w, a weight of exactly 0 or 1 is unchanged, and no other weight becomes 0, which would mean masked. Half
floats would have errors of up to 0.00024.

The unpacked size is bounded by the size of the file, not by the sizes that the file claims.
"""

import math
import zlib
from typing import Any

import numpy as np

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
