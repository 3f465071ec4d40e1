"""The picture of a record in a trace file: its pixels, or the bytes of its PNG file, as a tensor; the rest as JSON."""

from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import RegardError
from regard.images import RecordImage, record_image

if TYPE_CHECKING:
    from regard.trace.read_record import FourSizes, Tensors


def image_entry(image: RecordImage | None) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """The JSON of a picture, and its tensor."""
    if image is None:
        return None, {}
    pixels = np.frombuffer(image.pixels, np.uint8) if isinstance(image.pixels, bytes) else image.pixels
    about = {"grid": list(image.grid), "first": image.first, "side": image.side, "name": image.name}
    return about, {"image": pixels}


def image_in(tensors: "Tensors", own: str, entry: dict[str, Any], shape: "FourSizes") -> RecordImage | None:
    """The picture of a record; FileError where it is invalid."""
    about = entry.get("image")
    if about is None:
        return None
    valid = isinstance(about, dict) and set(about) == {"grid", "first", "side", "name"}
    if not valid or not isinstance(about["name"], str) or "image" not in entry["arrays"]:
        raise tensors.garbled(f"{own}image")
    pixels = tensors.get(f"{own}image", kinds="u")
    try:
        given = pixels.tobytes() if pixels.ndim == 1 else pixels
        image = record_image(given, about["grid"], about["first"], about["side"], about["name"])
        image.check(*shape[2:])
    except RegardError as error:
        raise tensors.garbled(f"{own}image") from error
    return image
