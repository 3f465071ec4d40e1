"""The comparison of two heads or two traces in a browser: numbers, signed colours, keyboard."""

from typing import Any

import numpy as np
import pytest
from browsing import settled
from playwright.sync_api import Browser, Page

from explorer_examples import TEXT, wide_head
from explorer_pages import MadeUp, browser_page, open_explorer
from regard import Trace
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer.answers import Answer

pytestmark = pytest.mark.web

PANEL = "section.compare-panel"


def listed(page: Page) -> list[str]:
    return [text.replace("−", "-") for text in page.locator(f"{PANEL} .compare-list li").all_inner_texts()]


def weights_of(made_up: MadeUp) -> np.ndarray:
    """The weights of both heads as half floats, as they are sent."""
    return np.asarray(made_up.trace[0].weights())[0].astype(np.float16).astype(np.float64)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_largest_differences_of_two_heads_are_listed(chromium: Browser, lang: Language) -> None:
    made_up, _ = wide_head()
    one, other = weights_of(made_up)
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="compare", head=0, lang=lang)
        order = np.argsort(-np.abs(other - one), axis=None, kind="stable")[:8]
        for text, at in zip(listed(page), order, strict=True):
            row, col = divmod(int(at), len(TEXT))
            assert text == f"{other[row, col] - one[row, col]:+.3f} {TEXT[row]} ({row}) → {TEXT[col]} ({col})"
        moved = 100 * np.abs(one - other).sum(axis=1).mean() / 2
        assert page.inner_text(f"{PANEL} .compare-moved") == say("explorer-compare-moved", lang, share=f"{moved:.1f}")


def test_side_by_side_or_as_a_difference(chromium: Browser) -> None:
    made_up, _ = wide_head()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="compare", head=0)
        assert page.locator(f"{PANEL} figure").count() == 2
        page.click("text=Difference")
        settled(page)
        assert page.locator(f"{PANEL} figure").count() == 1
        assert page.inner_text(f"{PANEL} figcaption") == "head 1 minus head 0"
        assert page.locator(f"{PANEL} .compare-gradient").is_visible()
        assert page.evaluate(SIGNS) == {"plus": True, "minus": True}


SIGNS = """() => {
  const canvas = document.querySelector(".compare-map canvas"), { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data, found = { plus: false, minus: false };
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] > 100) found[pixels[i] > pixels[i + 2] ? "plus" : "minus"] = true;
  }
  return found;
}"""
"""Which of the two hues of the signed scale the map contains."""


def test_arrow_keys_move_through_both_maps(chromium: Browser) -> None:
    made_up, _ = wide_head()
    one, other = weights_of(made_up)
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="compare", head=0)
        page.locator(f"{PANEL} .compare-map").first.focus()
        for _ in range(20):
            page.keyboard.press("ArrowUp")
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
        by = other[1, 0] - one[1, 0]
        read = page.inner_text(f"{PANEL} .compare-readout").replace("−", "-")
        assert read.startswith(f"cat (1) → the (0): {one[1, 0]:.3f} in head 0, {other[1, 0]:.3f} in head 1")
        assert read.endswith(f"{by:+.3f}")
        assert page.locator(f"{PANEL} .compare-mark").count() == 2


def test_maps_of_different_sizes_are_not_subtracted(chromium: Browser) -> None:
    trace = Trace.from_weights(np.eye(3)[None], list("abc"))
    other = Trace.from_weights(np.full((1, 3, 2), 0.5), list("abc"), list("xy"), kind="cross", name="cross")
    both = Trace([*trace, *other])
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(both), depth="head", view="compare", layer=0, head=0, other={"layer": 1, "head": 0})
        assert page.inner_text(f"{PANEL} .problem") == say("explorer-compare-sizes", "en")
        assert page.locator(f"{PANEL} figure").count() == 2
        assert page.locator(f"{PANEL} [data-value=difference]").is_hidden()
        assert listed(page) == []


def test_two_traces_are_compared_by_aligned_tokens(chromium: Browser) -> None:
    def compare(request: dict[str, Any]) -> Answer:
        left = np.array([[1, 0, np.nan], [0.5, 0.5, np.nan]], np.float32)
        right = np.array([[1, 0, 0], [0.25, np.nan, 0.75]], np.float32)
        keys = [["I", "I"], ["see", None], [None, "saw"]]
        about = {"R": 2, "C": 3, "high": 1, "wide": 1, "queries": [["I", "I"], ["see", "saw"]], "keys": keys}
        return Answer(about | {"note": None}, {"cells": left, "other": right})

    names = [{"en": "before", "zh": "之前"}, {"en": "after", "zh": "之后"}]
    trace = Trace.from_weights(np.eye(2)[None], ["I", "see"])
    made_up = MadeUp(trace, overview={"compare": {"names": names}}, requests={"compare": compare})
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="compare", compareAs="difference")
        assert listed(page) == ["-0.250 see | saw → I"]
        assert page.inner_text(f"{PANEL} figcaption") == "after minus before"
        assert page.locator(f"{PANEL} select").count() == 0


@pytest.mark.parametrize("kind", ["side", "difference"])
def test_maps_fit_a_narrow_screen(chromium: Browser, kind: str) -> None:
    made_up, _ = wide_head()
    with browser_page(chromium, 320, 700) as page:
        open_explorer(page, made_up, depth="head", view="compare", head=0, compareAs=kind)
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        box = page.locator(f"{PANEL} .compare-map").first.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 320


def test_compared_maps_are_saved_as_they_are_drawn(chromium: Browser) -> None:
    made_up, _ = wide_head()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="compare", head=0)
        page.click(".save")
        with page.expect_download() as download:
            page.click('[data-text="save-svg"]')
        saved = download.value.path().read_text(encoding="utf-8")
        assert saved.count("<image") == 2
        assert ">head 0<" in saved
        assert ">head 1<" in saved
