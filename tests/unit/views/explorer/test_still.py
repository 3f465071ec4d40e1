"""The picture where scripts do not run: valid XML with the tokens and the same colours, at any length."""

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from regard.messages import Language
from regard.trace import Trace
from regard.views.colours import Scale, viridis
from regard.views.explorer.still import failure, png, still
from regard.views.picture import picture

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # what was just written, not a file of others


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_small_map_is_rectangles_with_weights(lang: Language) -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    drawn = picture(Trace.from_weights(weights, ["我", "爱"])[0], 0, 0)
    root = parsed(still(drawn, lang))
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert texts.count("我") == 2
    cells = [node for node in root.iter(f"{SVG}rect") if node.find(f"{SVG}title") is not None]
    assert [node.find(f"{SVG}title").text for node in cells] == ["1", "0", "0.25", "0.75"]  # type: ignore[union-attr]
    red, green, blue = viridis(round(float(Scale.of([drawn]).level(0.25)) * 255) / 255).rgb
    assert cells[2].get("fill") == f"#{red:02x}{green:02x}{blue:02x}"
    assert cells[1].get("fill") == "#e8e8e8"
    assert "Noto Sans CJK SC" in (root.get("font-family") or "")


def test_a_large_map_is_one_image() -> None:
    weights = np.full((1000, 1000), 1e-3)
    text = still(picture(Trace.from_weights(weights)[0], 0, 0), "en")
    root = parsed(text)
    assert len(list(root.iter(f"{SVG}image"))) == 1
    assert len(text) < 200_000


def test_hostile_tokens_stay_text() -> None:
    tokens = ["<img onerror=alert(1)>", "</svg><script>", "a\x00b", "\ud800", "x" * 10**6, "&amp;"]
    root = parsed(still(picture(Trace.from_weights(np.eye(6), tokens)[0], 0, 0), "en"))
    assert {node.tag for node in root.iter()} == {f"{SVG}{name}" for name in ("svg", "title", "g", "rect", "text")}
    assert "<img onerror=aler…" in [node.text for node in root.iter(f"{SVG}text")]


def test_an_empty_map_and_nan_are_drawn() -> None:
    parsed(still(picture(Trace.from_weights(np.zeros((0, 0)))[0], 0, 0), "en"))
    bad = np.array([[1.0, 0.0], [np.nan, np.nan]])
    assert "#d62728" in still(picture(Trace.from_weights(bad)[0], 0, 0), "en")


def test_png_is_read_by_others() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png(pixels)))), pixels)


def test_a_failure_is_a_sentence() -> None:
    assert "a < b" in [node.text for node in parsed(failure("a < b")).iter(f"{SVG}text")]
