"""Pictures of records: read from arrays and PNG files, checked against the record, and kept in trace files."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard import read_trace
from regard.errors import ArgumentError, FileError
from regard.images import record_image
from regard.records import Record
from regard.trace import Trace
from regard.views.explorer.source import TraceSource
from regard.views.explorer.still import png

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)


def trace() -> Trace:
    return Trace.from_weights(np.full((3, 7), 1 / 7), kind="cross")


@pytest.mark.parametrize(
    "given", [PIXELS, PIXELS / 255, np.dstack([PIXELS, PIXELS[..., :1]]), PIXELS.astype(int), png(PIXELS)]
)
def test_pixels_of_any_form_are_the_same_picture(given: Any) -> None:
    image = record_image(given, (2, 3))
    assert image.size == (12, 8)
    assert image.pixels is not None
    found = image.pixels if isinstance(image.pixels, bytes) else png(image.pixels)
    assert found == png(PIXELS)


def test_the_explorer_shows_the_picture_and_its_grid() -> None:
    about = TraceSource(trace().with_image(PIXELS, (2, 3), first=1, name="a dog")).overview().about
    (shown,), (picture,) = about["records"][0]["images"], about["pictures"]
    assert (picture["width"], picture["height"], shown["grid"], shown["first"]) == (12, 8, [2, 3], 1)
    assert (shown["picture"], shown["side"], shown["name"]) == (0, "keys", "a dog")
    assert base64.b64decode(picture["data"].removeprefix("data:image/png;base64,")) == png(PIXELS)


@pytest.mark.parametrize("given", [PIXELS, png(PIXELS)])
def test_a_file_keeps_the_picture(tmp_path: Path, given: Any) -> None:
    made = trace().with_image(given, (2, 3), first=1, side="keys", name="狗")
    made.save(tmp_path / "t")
    (image,) = read_trace(tmp_path / "t")[0].images
    assert image.pixels is not None
    assert (image.grid, image.first, image.side, image.name) == ((2, 3), 1, "keys", "狗")
    np.testing.assert_array_equal(
        np.frombuffer(image.pixels, np.uint8) if isinstance(image.pixels, bytes) else image.pixels,
        np.frombuffer(given, np.uint8) if isinstance(given, bytes) else given,
    )


@pytest.mark.parametrize(
    ("grid", "options", "words"),
    [
        ((3, 3), {}, "3 × 3 has 9 patches, from position 0 on; there are 7 keys"),
        ((2, 3), {"first": 2}, "6 patches, from position 2 on; there are 7 keys"),
        ((2, 3), {"side": "both"}, "there are 3 queries"),
        ((2,), {}, r"such as \(14, 14\)"),
        ((0, 3), {}, r"such as \(14, 14\)"),
        ((2, 3), {"first": -1}, "first="),
        ((2, 3), {"side": "left"}, "keys, queries, both"),
    ],
)
def test_a_grid_that_does_not_fit_is_one_sentence(grid: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        trace().with_image(PIXELS, grid, **options)


@pytest.mark.parametrize(
    "pixels", [b"GIF89a", np.zeros(3), np.zeros((2, 2, 5)), np.zeros((0, 4, 3)), np.array([["a"]])]
)
def test_other_pictures_are_refused(pixels: Any) -> None:
    with pytest.raises(ArgumentError, match="PNG"):
        record_image(pixels, (1, 1))


def test_a_garbled_picture_in_a_file_is_a_file_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trace().with_image(PIXELS, (2, 3))
    monkeypatch.setattr(
        "regard.trace.file.PixelTable.entries",
        lambda self, images, place: ([{"grid": [9, 9], "first": 0, "side": "keys", "name": ""}], {}),
    )
    made.save(tmp_path / "t")
    with pytest.raises(FileError, match="makes no sense"):
        read_trace(tmp_path / "t")


def test_a_record_without_a_picture_has_none() -> None:
    assert Record(shape=(1, 1, 2, 2)).images == ()
    assert TraceSource(trace()).overview().about["records"][0]["images"] == []
