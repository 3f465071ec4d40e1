"""The comparison of two heads or two traces in a browser: numbers, signed colours, keyboard."""

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from browsing import browser_page, settled
from playwright.sync_api import Browser, Page

from explorer_examples import TEXT, patterned, wide_head
from explorer_pages import MadeUp, open_explorer
from regard import Trace
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer.answers import Answer
from regard.views.explorer.compared import ComparisonSource

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
        page.click(f"{PANEL} [data-value=difference]")
        settled(page)
        assert page.locator(f"{PANEL} figure").count() == 1
        assert page.inner_text(f"{PANEL} figcaption") == "head 1 minus head 0"
        assert page.locator(f"{PANEL} .compare-gradient").is_visible()
        assert page.evaluate(SIGNS) == {"plus": True, "minus": True}


@pytest.mark.parametrize("width", [1180, 480])
def test_two_texts_open_as_a_comparison_beside_each_other_where_there_is_room(chromium: Browser, width: int) -> None:
    with browser_page(chromium, width) as page:
        made_up, *_ = two_texts("I love you", "I hate you")
        open_explorer(page, made_up)
        tops = page.evaluate("() => [...document.querySelectorAll('.compare-map')].map((one) => one.offsetTop)")
        assert (tops[0] == tops[1]) == (width == 1180)
        assert not page.is_visible(".side")
        assert not page.is_visible(".texts")
        assert page.locator("figcaption").all_inner_texts() == ["A: I love you", "B: I hate you"]
        page.evaluate("() => { view.update({ view: 'map' }) }")
        settled(page)
        assert page.is_visible(".texts")


def test_heads_of_two_layers_are_named_by_letters(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, patterned(), depth="head", view="compare", layer=1, head=2, other={"layer": 2, "head": 0})
        names = ["A: layer 1 · decoder self-attention · head 2", "B: layer 2 · decoder self-attention · head 0"]
        assert page.locator(f"{PANEL} figcaption").all_inner_texts() == names
        page.click(f"{PANEL} [data-value=difference]")
        settled(page)
        assert page.inner_text(f"{PANEL} figcaption") == f"B minus A ({', '.join(names)})"
        assert " in A, " in page.inner_text(f"{PANEL} .compare-readout")


def test_equal_weights_are_not_drawn_as_masked(chromium: Browser) -> None:
    weights = np.stack([np.array([[1, 0], [0.5, 0.5]])] * 2)
    trace = Trace.from_weights(weights, ["I", "see"], kind="decoder")
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace), depth="head", view="compare", head=0, compareAs="difference")
        page.locator(f"{PANEL} .compare-map").focus()
        found = []
        for key in ("Home", "ArrowRight", "ArrowDown"):  # I–I, I–see (masked), see–see
            page.keyboard.press(key)
            found.append(page.evaluate(COLOURS_OF_CELL) > 1)
        assert found == [False, True, False]  # masked cells are striped


COLOURS_OF_CELL = """() => {
  const canvas = document.querySelector(".compare-map canvas"), own = canvas.getBoundingClientRect();
  const cell = document.querySelector(".compare-mark").getBoundingClientRect(), fine = canvas.width / own.width;
  const box = [cell.left - own.left + 4, cell.top - own.top + 4, cell.width - 8, cell.height - 8];
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return new Set(new Uint32Array(copy.getImageData(...box.map((one) => one * fine)).data.buffer)).size;
}"""


SIGNS = """() => {
  const canvas = document.querySelector(".compare-map canvas"), { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data, found = { plus: false, minus: false };
  for (let i = 0; i < pixels.length; i += 4) {
    const redder = pixels[i] - pixels[i + 2];
    if (Math.abs(redder) > 60) found[redder > 0 ? "plus" : "minus"] = true;
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
        assert page.inner_text(f"{PANEL} figcaption") == "B minus A (A: before, B: after)"
        assert page.locator(f"{PANEL} select").count() == 0


def spoken(words: str, seed: int) -> Trace:
    """A trace of two heads over a text, which it names."""
    tokens = words.split()
    scores = np.random.default_rng(seed).normal(size=(2, len(tokens), len(tokens)))
    powers = np.where(np.tri(len(tokens), dtype=bool), np.exp(scores), 0)
    trace = Trace.from_weights(powers / powers.sum(-1, keepdims=True), tokens, name="h.0.attn", kind="decoder")
    trace.texts = (words, "")
    return trace


def two_texts(left: str, right: str) -> tuple[MadeUp, Trace, Trace]:
    one, other = spoken(left, 0), spoken(right, 1)
    source = ComparisonSource(one.compare(other))
    about = source.overview().about["compare"]
    requests = {"compare": lambda request: source.compare(**request)}
    return MadeUp(one, overview={"compare": about}, requests=requests), one, other


def texts_in(page: Page) -> str:
    """All texts of the saved picture."""
    page.click(".save")
    page.wait_for_selector(".items option", state="attached")
    with page.expect_download() as download:
        page.click('[data-text="save-svg"]')
    return "\n".join(ElementTree.parse(download.value.path()).getroot().itertext())


@pytest.mark.parametrize("lang", LANGUAGES)
def test_words_in_place_of_each_other_are_compared(chromium: Browser, lang: Language) -> None:
    made_up, one, other = two_texts("I love you", "I hate you")
    weights = [np.asarray(trace[0].weights())[0, 0] for trace in (one, other)]
    by = (weights[1] - weights[0])[1, 1]
    with browser_page(chromium, 1400) as page:
        open_explorer(page, made_up, depth="head", view="compare", compareAs="difference", lang=lang)
        assert f"{by:+.3f} love | hate → love | hate" in listed(page)
        assert page.locator(f"{PANEL} .compare-only").count() == 0
        assert "NaN" not in texts_in(page)
        page.evaluate("view.update({ compareAs: 'side' })")
        settled(page)
        assert page.locator(f"{PANEL} figcaption").all_inner_texts() == ["A: I love you", "B: I hate you"]
        page.locator(f"{PANEL} .compare-map").first.focus()
        for key in ("Home", *["ArrowUp"] * 3, "ArrowDown"):
            page.keyboard.press(key)
        values = {
            "one": f"{weights[0][1, 0]:.3f}",
            "two": f"{weights[1][1, 0]:.3f}",
            "by": f"{(weights[1] - weights[0])[1, 0]:+.3f}",
        }
        wanted = say("explorer-compare-cell", lang, query="love | hate", key="I", left="A", right="B", **values)
        assert page.inner_text(f"{PANEL} .compare-readout").replace("−", "-") == wanted


@pytest.mark.parametrize("lang", LANGUAGES)
def test_words_of_one_text_alone_are_hatched_and_named(chromium: Browser, lang: Language) -> None:
    made_up, *_ = two_texts("I love you very much", "I hate you , cat and dog")
    with browser_page(chromium, 1400) as page:
        open_explorer(page, made_up, depth="head", view="compare", lang=lang)
        saved = texts_in(page)
        # Each map has its own words and all of its cells.
        assert [saved.splitlines().count(word) for word in ("love", "much", "hate", "cat", "you")] == [2, 2, 2, 2, 4]
        assert "NaN" not in saved
        assert "–" not in saved
        sizes = page.evaluate(
            "[...document.querySelectorAll('.compare-map canvas')].map((one) => one.getBoundingClientRect().height)"
        )
        assert len(sizes) == 2
        page.evaluate("view.update({ compareAs: 'difference' })")
        settled(page)
        saved = texts_in(page)
        assert "NaN" not in saved
        for name in "AB":
            assert say("explorer-compare-only", lang, name=name) in saved
        assert page.locator(f"{PANEL} .compare-only").count() == 2
        assert page.evaluate(HATCHED) == [True, True]
        assert all("–" not in text for text in listed(page))


HATCHED = """() => {
  const canvas = document.querySelector(".compare-map canvas"), { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const has = ([r, g, b]) => {
    for (let i = 0; i < pixels.length; i += 4) {
      if (Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 60) return true;
    }
    return false;
  };
  return [has([47, 111, 214]), has([200, 89, 14])];
}"""
"""Whether the stripes of cells that only A, or only B, has are drawn."""


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
