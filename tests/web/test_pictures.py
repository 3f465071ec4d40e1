"""Every state of the explorer looks as its stored picture: in both languages and themes, wide and narrow.

    REGARD_WRITE_PICTURES=1 python -m pytest tests/web/test_pictures.py      (make pictures) writes them

Pictures are compared by the mean colours of blocks of 8 × 8 pixels: smoothed edges of letters may differ; a moved
panel, another colour or another text may not.
"""

import io
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import browser_page, settled
from PIL import Image
from playwright.sync_api import Browser, Page

import explorer_examples as examples
from explorer_pages import MadeUp, open_explorer
from regard.messages import LANGUAGES, Language

FOLDER = Path(__file__).parents[2] / "docs/pictures/explorer"
WRITING = "REGARD_WRITE_PICTURES" in os.environ
FONTS = ("DejaVu Sans", "Noto Sans CJK SC")
STYLE = """
.regard-explorer { --font: "DejaVu Sans", "Noto Sans CJK SC" !important; --mono: "DejaVu Sans Mono" !important; }
.regard-explorer * { transition: none !important; caret-color: transparent !important; }
"""
BLOCK, APART, SHARE = 8, 28, 0.002
"""Pixels of a block, the difference of two means of 0 … 255 that counts, and the share of blocks that may differ."""
WIDE, NARROW = (1280, 900), (320, 1200)

Act = Callable[[Page], Any]
HEAD = {"depth": "head"}
SCENES: dict[Callable[[], MadeUp], dict[str, tuple[dict[str, Any], Act | None]]] = {
    examples.patterned: {
        "model": ({"depth": "model"}, None),
        "map": (HEAD | {"layer": 0, "head": 2, "query": 7, "key": 2}, None),
        "lines": (HEAD | {"layer": 0, "head": 2, "query": 7, "view": "lines"}, None),
        "sentence": (HEAD | {"layer": 0, "head": 2, "query": 7, "view": "sentence"}, None),
        "stripes": (HEAD | {"layer": 0, "head": 2, "heads": [0, 2, 3], "query": 7, "view": "sentence"}, None),
        "compare": (HEAD | {"layer": 0, "head": 2, "heads": [2, 0], "view": "compare"}, None),
        "help": (HEAD | {"view": "map"}, lambda page: page.locator(".actions .plain").last.click()),
    },
    examples.hand_made: {"numbers": ({"depth": "numbers", "query": 2, "numbersStep": 9}, None)},
    examples.translation: {"generation": (HEAD | {"view": "generation", "written": 2}, None)},
    examples.picture: {"image": (HEAD | {"query": 1}, None)},
    examples.pooled: {"long": (HEAD, None)},
    examples.compared: {"traces": (HEAD | {"view": "compare"}, None)},
    examples.with_effects: {
        "effect": (HEAD | {"query": 2, "key": 1}, lambda page: page.locator(".effect-buttons button").first.click())
    },
    examples.from_the_future: {"failure": ({}, None)},
}
OTHERS = (("en", "dark"), ("zh", "light"))
"""Compared by `make test-long`: every language and every theme is compared without them."""
AT_NARROW = ("model", "map", "sentence", "numbers", "compare")


def taken(page: Page) -> Image.Image:
    page.evaluate("() => document.fonts.ready")
    settled(page)
    page.wait_for_timeout(250)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def faults(found: Image.Image, kept: Image.Image) -> str:
    """What differs, in words; empty if nothing does."""
    if found.size != kept.size:
        return f"{found.size} pixels in place of {kept.size}"
    one, other = (blocks(image) for image in (found, kept))
    apart = np.abs(one - other).max(-1) > APART
    rows, cols = np.nonzero(apart)
    if apart.mean() <= SHARE:
        return ""
    place = [BLOCK * int(edge) for edge in (cols.min(), rows.min(), cols.max() + 1, rows.max() + 1)]
    return f"{apart.mean():.1%} of the picture differs, within {place} (left, top, right, bottom)"


def blocks(image: Image.Image) -> np.ndarray:
    """The mean colour of each block."""
    pixels = np.asarray(image.convert("RGB"), np.float32)
    R, C = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    return pixels[: R * BLOCK, : C * BLOCK].reshape(R, BLOCK, C, BLOCK, 3).mean((1, 3))


def kept_or_written(image: Image.Image, name: str) -> str:
    """Compare with the stored picture, or store this one with few colours."""
    path = FOLDER / f"{name}.png"
    if WRITING:
        FOLDER.mkdir(exist_ok=True)
        few_colours(image).save(path, optimize=True)
        return ""
    return f"{name}: {wrong}" if (wrong := faults(image, Image.open(path).convert("RGB"))) else ""


def few_colours(image: Image.Image) -> Image.Image:
    """The picture with 256 colours that cover all of its colours, however few pixels have them."""
    return image.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


@pytest.fixture(scope="module")
def fonts() -> None:
    """The fonts of the stored pictures."""
    listed = "" if shutil.which("fc-list") is None else subprocess.check_output(["fc-list", ":", "family"], text=True)
    if any(font not in listed for font in FONTS):
        pytest.skip(f"the pictures need the fonts {' and '.join(FONTS)}")


@pytest.mark.web
@pytest.mark.parametrize(
    ("lang", "theme"),
    [("en", "light"), ("zh", "dark"), *(pytest.param(*case, marks=pytest.mark.long) for case in OTHERS)],
)
@pytest.mark.parametrize("example", SCENES, ids=lambda example: example.__name__)
@pytest.mark.usefixtures("fonts")
def test_every_state_looks_as_its_picture(
    chromium: Browser, example: Callable[[], MadeUp], lang: Language, theme: str, tmp_path: Path
) -> None:
    """If this fails: `make pictures`, and look at what changed."""
    wrong = []
    for size, suffix in ((WIDE, ""), (NARROW, ".narrow")):
        scenes = {name: scene for name, scene in SCENES[example].items() if size == WIDE or name in AT_NARROW}
        if not scenes or (size == NARROW and theme == "dark"):
            continue
        with browser_page(chromium, *size, reduced_motion="reduce") as page:
            open_explorer(page, example(), lang=lang, theme=theme)
            page.add_style_tag(content=STYLE)
            for name, (state, act) in scenes.items():
                page.evaluate("(state) => { view.update(state) }", state)
                if act is not None:
                    settled(page)
                    act(page)
                found = taken(page)
                wrong.append(kept_or_written(found, f"{name}.{lang}.{theme}{suffix}"))
                if wrong[-1]:
                    found.save(tmp_path / f"{name}.{lang}.{theme}{suffix}.png")
                    wrong[-1] += f"; see {tmp_path}"
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_the_comparison_finds_what_changes_and_ignores_smoothed_edges() -> None:
    draw = np.random.default_rng(0)
    kept = np.full((400, 640, 3), 247, np.uint8)
    kept[40:360, 40:360] = draw.integers(0, 255, (8, 8, 3)).repeat(40, 0).repeat(40, 1)
    kept[50:60, 400:600] = 60
    image = Image.fromarray(kept)
    noisy = np.clip(kept + draw.integers(-6, 7, kept.shape), 0, 255).astype(np.uint8)
    assert faults(Image.fromarray(noisy), image) == ""
    assert faults(few_colours(image), image) == ""
    moved, recoloured = np.roll(kept, 6, axis=1), kept.copy()
    recoloured[40:80, 40:80] = 255 - recoloured[40:80, 40:80]
    assert "within [40, 40, 80, 80]" in faults(Image.fromarray(recoloured), image)
    assert faults(Image.fromarray(moved), image)
    assert faults(image.crop((0, 0, 600, 400)), image).startswith("(600, 400) pixels")


def test_every_stored_picture_is_compared_and_small() -> None:
    names = {name for scenes in SCENES.values() for name in scenes}
    wide = {f"{name}.{lang}.{theme}.png" for name in names for lang in LANGUAGES for theme in ("light", "dark")}
    narrow = {f"{name}.{lang}.light.narrow.png" for name in AT_NARROW for lang in LANGUAGES}
    files = list(FOLDER.glob("*.png"))
    assert {file.name for file in files} == wide | narrow
    assert sum(file.stat().st_size for file in files) < 3_000_000
