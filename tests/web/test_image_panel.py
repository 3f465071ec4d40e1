"""The image panel in a browser: words light patches, patches list words, by pointer and by keyboard."""

from pathlib import Path

import numpy as np
import pytest
from browsing import browser_page, opened, settled
from playwright.sync_api import Browser, Page

from explorer_examples import GRID, READ, picture
from explorer_pages import MadeUp, open_explorer
from regard import Trace
from regard.images import RecordImage
from regard.messages import LANGUAGES, Language, say
from regard.trace.measures.image_attention import attend_to_images

pytestmark = pytest.mark.web

PANEL = ".image-panel"
DARKNESS = """() => {
  const { width, height } = document.querySelector(".image-frame canvas"), copy = new OffscreenCanvas(width, height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(document.querySelector(".image-frame canvas"), 0, 0);
  const pixels = context.getImageData(0, 0, width, height).data;
  return Array.from({ length: width * height }, (_, i) => (pixels[4 * i] < 100 ? 1 : -1) * pixels[4 * i + 3]);
}"""
"""How much each patch is darkened; negative where it is lit."""


def order(page: Page) -> list[int]:
    """The patches from the brightest to the darkest."""
    return np.argsort(page.evaluate(DARKNESS), kind="stable").tolist()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_word_lights_the_patches_it_attends_to(chromium: Browser, lang: Language) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, picture(), depth="head", lang=lang)
        for word, weights in enumerate(READ):
            page.hover(f"{PANEL} .image-words button >> nth={word}")
            settled(page)
            assert order(page)[0] == int(np.argmax(weights))
            name = ["tree", "sun"][word]
            share = f"{100 * weights.sum():.1f}"
            assert page.inner_text(f"{PANEL} .image-caption") == say(
                "explorer-image-word", lang, word=name, share=share
            )


def test_a_patch_lists_the_words_that_attend_there(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, picture(), depth="head")
        box = page.locator(".image-frame").bounding_box()
        assert box is not None
        assert box["width"] / box["height"] == pytest.approx(90 / 60, rel=0.02)
        rows, cols = GRID
        page.mouse.move(box["x"] + box["width"] * 2.5 / cols, box["y"] + box["height"] * 0.5 / rows)
        settled(page)
        listed = [text.split() for text in page.locator(f"{PANEL} .bar-list li").all_inner_texts()]
        assert listed == [["sun", "0.900"], ["tree", "0.100"]]


def test_arrow_keys_move_from_patch_to_patch_and_from_word_to_word(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, picture(), depth="head")
        page.locator(".image-frame").focus()
        for key in ["ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowLeft"]:
            page.keyboard.press(key)
        assert page.inner_text(f"{PANEL} .image-caption") == say("explorer-image-patch", "en", row=1, col=1)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert page.inner_text(f"{PANEL} .image-caption") == say("explorer-image-patch", "en", row=2, col=2)
        page.keyboard.press("Tab")
        assert page.inner_text(f"{PANEL} [aria-pressed=true]") == "tree"
        page.keyboard.press("ArrowRight")
        assert page.inner_text(f"{PANEL} [aria-pressed=true]") == "sun"
        assert order(page)[0] == 2


def test_the_selected_query_lights_the_picture(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, picture(), depth="head", query=0, key=0)
        page.evaluate("view.update({ query: 1 })")
        settled(page)
        assert order(page)[0] == 2


def test_crops_have_the_shares_of_trace_image(chromium: Browser) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(9), (1, 2, 9))
    pixels = np.random.default_rng(1).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    crops = (
        RecordImage(pixels, (1, 3), side="both", crop=0, positions=np.array([3, 1, 2]), extra=("[CLS]",)),
        RecordImage(None, (2, 2), first=4, side="both", crop=1),
    )
    trace = Trace([Trace.from_weights(weights, list("abcdefghi"), kind="decoder")[0].changed(images=crops)])
    found = attend_to_images(trace, 8, head=1)
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace), depth="head", layer=0, head=1, query=8)
        settled(page)
        page.hover(f"{PANEL} .image-words button >> nth=1")
        settled(page)
        assert page.locator(f"{PANEL} .image-words button").all_inner_texts() == ["[CLS]", "i"]
        shares = [f"crop {view.image.crop + 1} · {100 * view.share:.1f} %" for view in found.views]  # type: ignore[operator]
        assert page.locator(f"{PANEL} figcaption").all_inner_texts() == shares
        assert page.inner_text(f"{PANEL} .image-caption") == say(
            "explorer-image-word", "en", word="i", share=f"{100 * found.share:.1f}"
        )
        page.locator(".image-frame").nth(1).focus()
        page.keyboard.press("End")
        patch = attend_to_images(trace, (1, 1), head=1)
        assert page.inner_text(f"{PANEL} .image-caption") == say(
            "explorer-image-patch-gives", "en", row=2, col=2, share=f"{100 * patch.share:.1f}"
        )


def test_a_file_lights_the_picture_from_its_map(chromium: Browser, tmp_path: Path) -> None:
    """A file of a small map stores no exact parts, only the map."""
    pixels = np.random.default_rng(1).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    record = Trace.from_weights(READ[None], ["tree", "sun"], [f"patch {i}" for i in range(6)], kind="cross")[0]
    Trace([record.changed(images=(RecordImage(pixels, GRID, name="garden"),))]).html(tmp_path / "page.html", lang="en")
    with opened(chromium, tmp_path / "page.html") as page:
        assert page.locator(".lead .texts").count() == 0  # patches are no text
        assert page.inner_text(f"{PANEL} .problem") == ""
        for word, weights in enumerate(READ):
            page.hover(f"{PANEL} .image-words button >> nth={word}")
            settled(page)
            assert order(page)[0] == int(np.argmax(weights))
