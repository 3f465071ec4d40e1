"""The pictures of a record in a trace file: pixels, or the bytes of a PNG file, as a tensor; the rest as JSON.

Pixels that several records share are stored with the first of them.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.arrays import is_integer
from regard.errors import RegardError
from regard.images import RecordImage, record_image

if TYPE_CHECKING:
    from regard.trace.read_record import FourSizes, Tensors

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
