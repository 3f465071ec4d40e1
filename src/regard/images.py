"""RecordImage: a picture that a vision model read, its patches, and their positions among the queries or keys.

A picture may be read as several crops, a video as frames: each of them is a RecordImage of its own.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from regard.arrays import is_integer, to_numpy
from regard.errors import ArgumentError, MissingPackageError
from regard.files.safe_open import open_file
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

    pixels     (height, width, 3) bytes, or the bytes of a PNG file; None where only the grid is known
    grid       rows and columns of patches; patch 0 is at the top left, patch 1 to its right
    first      the position of the first patch among the keys, or queries; a class token before them makes it 1
    side       whether the patches are the keys, the queries, or both
    name       what the picture shows, for screen readers
    positions  the position of each patch, rows × columns, where they do not follow each other; −1 for a patch that is
               not in the record, as in a window
    sample     the sample that read the picture; None for all
    number     the number of the picture among those of its sample, from 0 on
    crop       its number among several crops of the picture; None for the whole picture
    frame      its number among the frames of a video; None for a picture
    extra      the names of the positions before the first patch, such as "[CLS]"
    """

    pixels: np.ndarray | bytes | None
    grid: tuple[int, int]
    first: int = 0
    side: Side = "keys"
    name: str = ""
    positions: np.ndarray | None = None
    sample: int | None = None
    number: int = 0
    crop: int | None = None
    frame: int | None = None
    extra: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; 0 0 where the pixels are unknown."""
        if self.pixels is None:
            return 0, 0
        if isinstance(self.pixels, bytes):  # the header of a PNG file begins with them
            return int.from_bytes(self.pixels[16:20], "big"), int.from_bytes(self.pixels[20:24], "big")
        return self.pixels.shape[1], self.pixels.shape[0]

    @property
    def patches(self) -> np.ndarray:
        """The position of each patch, row by row; −1 for a patch that is not in the record."""
        count = self.grid[0] * self.grid[1]
        return np.arange(self.first, self.first + count) if self.positions is None else self.positions.reshape(-1)

    def is_on(self, side: Literal["keys", "queries"]) -> bool:
        """Whether the patches are among the keys, or the queries."""
        return self.side in (side, "both")

    def is_of(self, sample: int) -> bool:
        """Whether this sample read the picture."""
        return self.sample in (None, sample)

    def check(self, T: int, S: int, B: int | None = None) -> None:
        """Raise ArgumentError where the patches do not fit in T queries and S keys, or the sample in B samples."""
        last, patches = int(self.patches.max(initial=-1)), self.grid[0] * self.grid[1]
        for side, length in (("keys", S), ("queries", T)):
            if self.side in (side, "both") and last >= length:
                rows, cols = self.grid
                first = self.first if self.positions is None else int(self.patches[self.patches >= 0][0])
                raise ArgumentError(
                    "image-grid", rows=rows, cols=cols, patches=patches, first=first, side=side, length=length
                )
        if B is not None and self.sample is not None and self.sample >= B:
            raise ArgumentError("choice-range", what="sample", asked=self.sample, last=B - 1)


def record_image(pixels: Any, grid: Any, first: int = 0, side: Side = "keys", name: str = "") -> RecordImage:
    """A RecordImage from an array (height, width) or (height, width, 3 or 4), NumPy or torch, PNG bytes, or a file.

    Floats count from 0 to 1. Raises as `pixels_of`.
    """
    sizes = tuple(grid) if isinstance(grid, tuple | list) else ()
    if len(sizes) != 2 or not all(is_integer(size) and 0 < size <= LARGEST_SIDE for size in sizes):
        raise ArgumentError("image-grid-form", found=grid)
    if side not in SIDES:
        raise ArgumentError("option-unknown", option="side", asked=side, choices=Listed(SIDES))
    if not is_integer(first) or first < 0:
        raise ArgumentError("image-first", found=first)
    made = RecordImage(pixels_of(pixels), (int(sizes[0]), int(sizes[1])), int(first), side, str(name))
    if not all(0 < length <= LARGEST_SIDE for length in made.size):
        raise ArgumentError("image-pixels", found=made.size)
    return made


def pixels_of(given: Any) -> np.ndarray | bytes:
    """The pixels of a picture: an array, PNG bytes, the path of a picture file, or a picture of Pillow.

    Raises ArgumentError for another form, FileError for a file that cannot be read, and MissingPackageError where a
    file of another format than PNG needs Pillow.
    """
    if isinstance(given, str | os.PathLike):
        given = _read(Path(given))
    if callable(getattr(given, "convert", None)) and hasattr(given, "getbands"):  # a picture of Pillow
        given = np.asarray(given.convert("RGB"))
    return _pixels(given)


def _read(path: Path) -> Any:
    with open_file(path, most=MOST_BYTES) as file:
        content = file.read()
        if content.startswith(PNG):
            return content
        try:
            from PIL import Image, UnidentifiedImageError
        except ImportError as error:
            raise MissingPackageError("missing-package", package="Pillow", extra="plot", what=str(path)) from error
        file.seek(0)
        try:
            with Image.open(file) as picture:
                if max(picture.size) > LARGEST_SIDE:
                    raise ArgumentError("image-pixels", found=picture.size)
                return picture.convert("RGB")
        except (UnidentifiedImageError, OSError, ValueError) as error:
            raise ArgumentError("image-pixels", found=str(path)) from error


def decoded(pixels: np.ndarray | bytes) -> np.ndarray:
    """The pixels as (height, width, 3) bytes; those of a PNG file need Pillow."""
    if not isinstance(pixels, bytes):
        return pixels
    from io import BytesIO

    try:
        from PIL import Image
    except ImportError as error:
        raise MissingPackageError("missing-package", package="Pillow", extra="plot", what="trace.image") from error
    try:
        with Image.open(BytesIO(pixels)) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, ValueError) as error:
        raise ArgumentError("image-pixels", found=f"{len(pixels)} bytes") from error


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


def with_pictures(images: Sequence[RecordImage], added: RecordImage) -> tuple[RecordImage, ...]:
    """The pictures of a record with one more, which replaces those at the same positions."""
    taken = set(added.patches.tolist()) - {-1}
    kept = [
        one
        for one in images
        if not ((one.is_on("keys") and added.is_on("keys")) or (one.is_on("queries") and added.is_on("queries")))
        or not (one.sample is None or added.sample is None or one.sample == added.sample)
        or taken.isdisjoint(one.patches.tolist())
    ]
    return (*kept, added)
