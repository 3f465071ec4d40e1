"""RecordImage: the picture that a vision model read, and the grid of its patches, beside the attention over them."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from regard.arrays import is_integer, to_numpy
from regard.errors import ArgumentError
from regard.messages import Listed

Side = Literal["keys", "queries", "both"]
SIDES: tuple[Side, ...] = get_args(Side)
PNG = b"\x89PNG\r\n\x1a\n"
LARGEST_SIDE = 2**14
MOST_BYTES = 2**26
"""Limits of a picture: pixels of a side, and bytes of a PNG file."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordImage:
    """A picture and its patches.

    pixels   (height, width, 3) bytes, or the bytes of a PNG file
    grid     rows and columns of patches; patch 0 is at the top left, patch 1 to its right
    first    the position of the first patch among the keys, or queries; a class token before them makes it 1
    side     whether the patches are the keys, the queries, or both
    name     what the picture shows, for screen readers
    """

    pixels: np.ndarray | bytes
    grid: tuple[int, int]
    first: int = 0
    side: Side = "keys"
    name: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        if isinstance(self.pixels, bytes):  # the header of a PNG file begins with them
            return int.from_bytes(self.pixels[16:20], "big"), int.from_bytes(self.pixels[20:24], "big")
        return self.pixels.shape[1], self.pixels.shape[0]

    def check(self, T: int, S: int) -> None:
        """Raise ArgumentError where the patches do not fit in T queries and S keys."""
        patches = self.grid[0] * self.grid[1]
        for side, length in (("keys", S), ("queries", T)):
            if self.side in (side, "both") and self.first + patches > length:
                rows, cols = self.grid
                raise ArgumentError(
                    "image-grid", rows=rows, cols=cols, patches=patches, first=self.first, side=side, length=length
                )


def record_image(pixels: Any, grid: Any, first: int = 0, side: Side = "keys", name: str = "") -> RecordImage:
    """A RecordImage from an array (height, width) or (height, width, 3 or 4), NumPy or torch, or PNG bytes.

    Floats count from 0 to 1. Raises ArgumentError for another form.
    """
    sizes = tuple(grid) if isinstance(grid, tuple | list) else ()
    if len(sizes) != 2 or not all(is_integer(size) and 0 < size <= LARGEST_SIDE for size in sizes):
        raise ArgumentError("image-grid-form", found=grid)
    if side not in SIDES:
        raise ArgumentError("option-unknown", option="side", asked=side, choices=Listed(SIDES))
    if not is_integer(first) or first < 0:
        raise ArgumentError("image-first", found=first)
    made = RecordImage(_pixels(pixels), (int(sizes[0]), int(sizes[1])), int(first), side, str(name))
    if not all(0 < length <= LARGEST_SIDE for length in made.size):
        raise ArgumentError("image-pixels", found=made.size)
    return made


def _pixels(given: Any) -> np.ndarray | bytes:
    if isinstance(given, bytes | bytearray):
        if not given.startswith(PNG) or len(given) < 24 or len(given) > MOST_BYTES:
            raise ArgumentError("image-pixels", found=f"{len(given)} bytes")
        return bytes(given)
    array = to_numpy(given)
    if array.ndim == 2:
        array = array[..., None].repeat(3, -1)
    if array.ndim != 3 or array.shape[-1] not in (3, 4) or array.dtype.kind not in "uif":
        raise ArgumentError("image-pixels", found=f"{array.dtype} {array.shape}")
    array = array[..., :3]
    if array.dtype.kind == "f":
        array = np.nan_to_num(array).clip(0, 1) * 255
    return np.ascontiguousarray(np.round(array).clip(0, 255).astype(np.uint8))
