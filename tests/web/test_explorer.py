"""The explorer's file in a real browser: every view in both languages and themes, by keyboard and by pointer."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import browser_page, opened, press, settled
from playwright.sync_api import Browser, Page

from explorer_examples import patterned
from explorer_pages import MadeUp, open_explorer
from regard import Mask, Record, See, Trace, attend
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer.page import write_page

pytestmark = pytest.mark.web

VIEWS = ("map", "lines", "sentence", "compare")
MEASURES = {name: f"explorer-figure-{name}" for name in ("maps", "pattern")}
MEASURES |= {name: f"explorer-meaning-{name}" for name in ("entropy", "sink", "distance")}
COLOURS = """(name) => {
  const canvas = document.querySelector(name), { width, height } = canvas;
  const all = canvas.getContext("2d").getImageData(0, 0, width, height);
  return new Set(new Uint32Array(all.data.buffer)).size;
}"""


def readout(page: Page) -> str:
    return page.inner_text(".readout")


def said(page: Page) -> str:
    """What the live region says, which waits a moment."""
    page.wait_for_timeout(250)
    return page.text_content("[data-live]") or ""


# --- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lang", "theme"),
    [
        ("en", "light"),
        ("zh", "dark"),
        pytest.param("en", "dark", marks=pytest.mark.long),
        pytest.param("zh", "light", marks=pytest.mark.long),
    ],
)
def test_every_view_is_drawn_and_serious_faults_of_access_are_absent(
    chromium: Browser, folder: Path, lang: Language, theme: str
) -> None:
    with opened(chromium, folder / "layers.html", f"lang={lang}&theme={theme}") as page:
        assert page.title() == page.inner_text("h1") == say("explorer-title", lang)
        assert page.inner_text(".lead > :last-child") == say("explorer-lead-map", lang)
        assert page.evaluate(COLOURS, ".map") > 10
        for depth, view in [("model", "map"), ("numbers", "map"), *(("head", view) for view in VIEWS)]:
            page.evaluate(
                "(address) => { location.hash = address }", f"lang={lang}&theme={theme}&depth={depth}&view={view}"
            )
            settled(page)
            page.wait_for_timeout(150)  # colours change gradually
            found = Axe().run(page).response["violations"]
            assert [
                (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
            ] == []


@pytest.mark.parametrize("name", ["layers", "english", "cross", "long"])
def test_nothing_extends_beyond_a_page_of_any_width(chromium: Browser, folder: Path, name: str) -> None:
    with opened(chromium, folder / f"{name}.html", wide=320) as page:
        for wide, lang, view in product((320, 640, 1280), LANGUAGES, VIEWS):
            page.set_viewport_size({"width": wide, "height": 900})
            page.evaluate("(address) => { location.hash = address }", f"lang={lang}&view={view}")
            settled(page)
            beyond = page.evaluate(
                """() => [...document.querySelectorAll("#regard *")].filter((one) => !one.closest(".lines-frame, .sr")
                  && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.className || one.tagName)"""
            )
            assert beyond == [], (wide, lang, view)


def test_a_pooled_map_says_what_a_cell_means(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "long.html") as page:
        assert say("explorer-cell-pooled", "en", high=512, wide=512) in page.inner_text(".meaning")
        assert "32256–32767" in readout(page)


def test_the_few_words_of_a_cell_are_named(chromium: Browser) -> None:
    cells = np.tril(np.ones((30, 30))) / np.arange(1, 31)[:, None]
    words = tuple(f"w{at}" for at in range(60))
    record = Record(
        shape=(1, 1, 60, 60), map=cells[None, None], kind="decoder", query_tokens=(words,), key_tokens=(words,)
    )
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(Trace([record])), query=58, key=4)
        assert "w58 w59 (58–59)" in readout(page)
        assert "w4 w5 (4–5)" in readout(page)
        page.evaluate("() => { view.update({ view: 'sentence' }) }")
        settled(page)
        assert page.locator(".words:visible span").all_inner_texts()[:2] == ["w0 w1", "w2 w3"]


def test_a_long_text_has_lines_at_the_words_shown_and_at_the_selected_one(chromium: Browser) -> None:
    even = np.tri(240) / np.arange(1, 241)[:, None]  # the later a query, the less to each key
    trace = Trace.from_weights(even[None], [f"w{at}" for at in range(240)])
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace), view="lines", query=239, key=0)
        told = page.inner_text(".lines-panel > p")
        assert not told.startswith("0 lines")
        assert say("explorer-lines-own", "en", weight="0.00042") in told
        page.evaluate("() => { view.update({ threshold: 0.5 }) }")
        settled(page)
        assert page.inner_text(".lines-panel > p").startswith("0 lines, weight 0.5 or more")


def test_a_translation_opens_at_its_first_word(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "cross.html", "lang=en&head=1") as page:
        assert "我 (0)" in readout(page)
        assert "I (0)" in readout(page)


def test_tokens_are_merged_to_words(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "english.html", "view=sentence") as page:
        assert page.locator(".words:visible span").count() == 7
        press(page, "w")
        assert page.locator(".words:visible span").all_inner_texts() == ["The", "cat", "sat", "unbelievably", "still"]


# --- keyboard -----------------------------------------------------------------------------------------------


def test_the_map_works_by_keyboard_alone_and_says_the_cell(chromium: Browser, folder: Path, layers: Trace) -> None:
    with opened(chromium, folder / "layers.html", "layer=1&head=2&at=4-0") as page:
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.className") == "map":
                break
        press(page, "ArrowUp", "ArrowRight", "Enter")
        weight = float(layers[1].weights()[0, 2, 3, 1])
        assert said(page) == say("explorer-cell-said", "en", query="月 (3)", key="前 (1)", weight=f"{weight:.3f}")
        assert page.locator(".pins li").count() == 1
        press(page, "Home", "Enter")
        assert page.locator(".pins li").count() == 2
        press(page, "Escape")
        assert page.locator(".pins li").count() == 0
        press(page, "End")
        assert said(page) == say("explorer-cell-masked", "en", query="月 (3)", key="光 (4)")
        press(page, "+")
        assert page.is_visible(".under .small")
        press(page, "0")
        assert not page.is_visible(".under .small")


def test_keys_change_head_layer_colours_language_and_theme(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html", "layer=0&head=0") as page:
        press(page, "]", ".")
        assert page.inner_text(".heading h2").endswith("head 1")
        assert page.inner_text(".heading h2").startswith("layer 1")
        press(page, "c", "l", "d")
        assert page.input_value(".stage .chooser select") == "linear"
        assert page.inner_text("h1") == say("explorer-title", "zh")
        assert page.get_attribute(".regard-explorer", "data-theme") == "dark"
        assert page.get_attribute("html", "lang") == "zh-CN"
        press(page, "n")
        assert page.is_visible(".lines")
        assert not page.is_visible(".map")


def test_the_help_keeps_the_focus_and_closes_by_escape(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html") as page:
        press(page, "?")
        assert page.is_visible("dialog.help")
        for _ in range(3):
            press(page, "Tab")
            assert page.evaluate(
                "!!document.activeElement.closest('dialog') || document.activeElement === document.body"
            )
        press(page, "Escape")
        assert not page.is_visible("dialog.help")


def test_the_grid_of_heads_has_one_tab_stop_and_opens_a_head(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html", "layer=0&head=0&depth=model") as page:
        assert page.locator('.tile[tabindex="0"]').count() == 1
        page.focus('.tile[tabindex="0"]')
        press(page, "ArrowDown", "ArrowRight", "ArrowRight", "Enter")
        assert page.is_visible(".map")
        assert "#layer=1&head=2" in page.evaluate("new Promise((done) => setTimeout(() => done(location.hash), 400))")


def test_every_family_of_patterns_opens_its_clearest_head(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, patterned(), depth="model")
        page.click(".families button >> text=induction")
        settled(page)
        assert page.inner_text(".heading h2") == "layer 0 · decoder self-attention · head 2"
        assert page.inner_text(".does").startswith("Looks at what followed the same token earlier (induction)")


def test_a_head_is_shown_beside_the_tiles_where_there_is_room_and_the_open_one_without_a_pointer(
    chromium: Browser,
) -> None:
    with browser_page(chromium, 1280) as page:
        open_explorer(page, patterned(), depth="model", layer=2, head=1)
        title, size = ".preview b", "() => document.querySelector('.preview canvas').width"
        for layer, head, tile in ((2, 1, None), (1, 2, ".tile >> nth=6"), (2, 1, None)):
            if tile:
                page.hover(tile)
            else:
                page.mouse.move(5, 5)
            settled(page)
            assert page.inner_text(title) == f"layer {layer} · decoder self-attention · head {head}"
            page.wait_for_function(f"({size})() === 10")  # its own map, of ten tokens
        preview, tiles = (page.locator(name).bounding_box() for name in (".preview", ".heads >> nth=1"))
        assert preview
        assert tiles
        assert preview["x"] > tiles["x"] + tiles["width"]
        page.evaluate("() => { view.update({ depth: 'head' }) }")
        settled(page)
        assert not page.is_visible(".preview")
        page.evaluate("() => { view.update({ depth: 'model' }) }")
        page.set_viewport_size({"width": 480, "height": 900})
        page.hover(".tile >> nth=6")
        settled(page)
        narrow = page.locator(".preview").bounding_box()
        assert narrow
        assert narrow["x"] + narrow["width"] <= 480


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_view_and_each_measure_says_what_is_shown(chromium: Browser, lang: Language) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, patterned(), lang=lang)
        for shown in ("model", "numbers", *VIEWS):
            state = {"depth": shown} if shown in ("model", "numbers") else {"depth": "head", "view": shown}
            page.evaluate("(state) => { view.update(state) }", state)
            settled(page)
            assert page.inner_text(".lead > :last-child") == say(f"explorer-lead-{shown}", lang)
        for measure, text in MEASURES.items():
            page.evaluate("(show) => { view.update({ depth: 'model', sort: 'layer', show }) }", measure)
            settled(page)
            assert page.inner_text(".model-note") == say(text, lang)
            assert page.locator(".families").is_visible() != page.locator(".model-panel .ramp").is_visible()


# --- pointer ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [(0, 0), (4, 0), (4, 4), (0, 4)])
def test_the_cell_under_the_pointer_is_said_beside_it(
    chromium: Browser, folder: Path, layers: Trace, at: tuple[int, int]
) -> None:
    (query, key), text = at, "床前明月光"
    with opened(chromium, folder / "layers.html", f"layer=1&head=2&at={query}-{key}") as page:
        assert not page.is_visible(".tip")
        page.locator(".map").focus()
        assert page.is_visible(".tip")
        weight = float(layers[1].weights()[0, 2, query, key])
        words = {"query": f"{text[query]} ({query})", "key": f"{text[key]} ({key})"}
        seen = say("explorer-cell-said", "en", **words, weight=f"{weight:.3f}")
        assert page.inner_text(".tip") == (seen if key <= query else say("explorer-cell-masked", "en", **words))
        tip, frame = (page.locator(name).bounding_box() for name in (".tip", ".map-frame"))
        assert tip
        assert frame
        assert tip["x"] >= frame["x"]
        assert tip["x"] + tip["width"] <= frame["x"] + frame["width"]
        assert frame["y"] <= tip["y"] <= frame["y"] + frame["height"] - tip["height"]


def test_hover_selects_a_click_pins_and_leaving_returns_to_the_pin(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html") as page:
        box = page.locator(".map").bounding_box()
        assert box is not None
        right, low = box["x"] + box["width"] - 20, box["y"] + box["height"] - 20
        page.mouse.click(right, low)
        settled(page)
        assert page.locator(".pins li").count() == 1
        pinned = readout(page)
        page.mouse.move(right - 150, low)
        settled(page)
        assert readout(page) != pinned
        page.mouse.move(5, 5)
        settled(page)
        assert readout(page) == pinned


def test_the_wheel_zooms_a_map_with_focus_and_a_drag_moves_it(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "long.html") as page:
        box = page.locator(".map").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.wheel(0, -1)  # without focus the page scrolls
        settled(page)
        assert not page.is_visible(".under .small")
        page.focus(".map")
        page.mouse.wheel(0, -600)
        settled(page)
        before = page.inner_text(".meaning")
        page.mouse.down()
        page.mouse.move(x - 90, y - 60, steps=4)
        page.mouse.up()
        settled(page)
        assert page.inner_text(".meaning") != before
        assert page.locator(".pins li").count() == 0  # a drag pins nothing


# --- addresses ----------------------------------------------------------------------------------------------


def test_an_enlarged_part_of_a_long_text_has_words_and_exact_weights(chromium: Browser, tmp_path: Path) -> None:
    """Its masked cells hide the coarse cells below, which cover more tokens."""
    T, at = 1024, 1000
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(1, 1, T, 8)).astype(np.float32) for _ in range(2))
    _, record = attend(q, k, k, mask=Mask.causal(), see=See(map=16, qk=True))
    tokens = tuple(f"w{i}" for i in range(T))
    trace = Trace([record.changed(query_tokens=(tokens,), key_tokens=(tokens,), kind="decoder")])
    trace.html(tmp_path / "page.html", lang="en")
    query, key = at + 15, at + 5
    weight = float(np.asarray(trace[0].weights()[0, 0])[query, key])
    with opened(chromium, tmp_path / "page.html", f"zoom={at}_{at + 20}_{at}_{at + 20}&at={query}-{key}") as page:
        page.wait_for_function(
            "(word) => document.querySelector('.readout').textContent.includes(word)", arg=f"w{query}"
        )
        *words, shown = readout(page).split()
        assert words == ["query", f"w{query}", f"({query})", "key", f"w{key}", f"({key})", "weight"]
        assert float(shown) == pytest.approx(weight, rel=0.07)  # small weights have two digits
        assert say("explorer-in-part", "en") in page.inner_text(".neighbours-panel h3 >> nth=1")
        grey, bright = page.evaluate(HUES)
        assert grey < 24 < bright  # above the diagonal stripes, below it colours


HUES = """() => {
  const canvas = document.querySelector(".map"), { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const hue = (x, y) => {
    const pixels = copy.getImageData(x * width, y * height, 0.1 * width, 0.1 * height).data;
    let most = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const colour = pixels.slice(i, i + 3);
      most = Math.max(most, Math.max(...colour) - Math.min(...colour));
    }
    return most;
  };
  return [hue(0.75, 0.3), hue(0.3, 0.75)];
}"""
"""How far the colours are from grey, above and below the diagonal."""


@pytest.mark.parametrize("separators", [("[CLS]", "[SEP]", "[SEP]"), ("<s>", "</s>", "</s>")], ids=["BERT", "RoBERTa"])
def test_one_text_of_a_pair_is_shown_against_the_other(
    chromium: Browser, tmp_path: Path, separators: tuple[str, str, str]
) -> None:
    first, *ends = separators
    twice = [ends[0]] * (2 if first == "<s>" else 1)
    one, other = [first, "the", "cat", "sat", *twice], ["a", "dog", "ran", "away", ends[1]]
    T = len(one) + len(other)
    Trace.from_weights(np.full((1, T, T), 1 / T), one + other, kind="encoder").html(tmp_path / "page.html", lang="en")
    with opened(chromium, tmp_path / "page.html", "view=lines") as page:
        list_of = page.get_by_label("Texts")
        assert list_of.locator("option").all_inner_texts() == ["both", "A → A", "A → B", "B → A", "B → B"]
        list_of.select_option("A → B")
        settled(page)
        assert page.inner_text(".lines-panel > .quiet").startswith(f"{len(one) * len(other)} lines")
        page.click(".lines-panel >> text=Show all")
        settled(page)
        assert list_of.input_value() == "0"
        assert page.inner_text(".lines-panel > .quiet").startswith(f"{T * T} lines")


def test_one_text_alone_is_no_pair(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html") as page:
        assert page.get_by_label("Texts").is_hidden()


def test_the_address_restores_the_state(chromium: Browser, folder: Path) -> None:
    address = "layer=1&head=2&lang=zh&theme=dark&view=lines&lines=horizontal&scale=log&heads=1.2&pins=3-1.4-0&at=3-1"
    with opened(chromium, folder / "layers.html", address) as page:
        page.wait_for_timeout(400)
        kept = page.evaluate("location.hash.slice(1)")
    assert dict(part.split("=") for part in kept.split("&")) == dict(part.split("=") for part in address.split("&"))


def test_a_link_opened_in_the_same_tab_restores_its_whole_state(chromium: Browser, folder: Path) -> None:
    with opened(
        chromium, folder / "layers.html", "layer=1&head=2&view=lines&scale=log&theme=dark&pins=3-1&at=3-1"
    ) as page:
        page.evaluate("() => { location.hash = 'layer=1&head=2' }")
        settled(page)
        assert page.is_visible(".map")
        assert page.locator(".pins li").count() == 0
        assert page.get_attribute(".regard-explorer", "data-theme") is None
        assert page.input_value(".stage .chooser select") == "auto"
        assert "光 (4)" in readout(page)  # the last query, as when the file is opened
        page.evaluate("() => { location.hash = 'layer=0&head=0&at=2-1' }")
        settled(page)
        assert "明 (2)" in readout(page)
        page.evaluate("() => { location.hash = 'layer=0&head=0' }")
        settled(page)
        assert "光 (4)" in readout(page)


def test_an_address_that_does_not_fit_is_ignored(chromium: Browser, folder: Path) -> None:
    with opened(chromium, folder / "layers.html", "layer=99&head=-1&lang=fr&view=x&pins=9-9&zoom=a_b&scale=no") as page:
        assert page.inner_text("h1") == say("explorer-title", "en")
        assert page.locator(".pins li").count() == 0


# --- hostile input ------------------------------------------------------------------------------------------

PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "{{answers}}",
    "\u202eabc\u202c",
    "x" * 10**6,
]


def test_tokens_that_look_like_markup_stay_text(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    write_page(Trace.from_weights(np.full((5, 5), 0.2), PAYLOADS, name="<b>h.0</b>"), path, lang="en")
    with opened(chromium, path, "view=sentence") as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for key in "mns123":
            press(page, key)
        assert page.locator('#regard img[src="x"], #regard script, #regard b b').count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_text_from_right_to_left_is_read_so(chromium: Browser, tmp_path: Path) -> None:
    weights = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    Trace.from_weights(weights, ["أحب", "اللغة", "."], name="h.0").html(tmp_path / "rtl.html", lang="en")
    with opened(chromium, tmp_path / "rtl.html", "view=sentence") as page:
        first, last = (page.locator(".words:visible span").nth(at).bounding_box() for at in (0, 2))
        assert first is not None
        assert last is not None
        assert first["x"] > last["x"]


def test_a_page_in_the_dark_is_printed_on_white(chromium: Browser, folder: Path) -> None:
    ink = "() => getComputedStyle(document.querySelector('.regard-explorer')).color"
    pixel = """() => {
      const copy = new OffscreenCanvas(44, 400).getContext("2d", { willReadFrequently: true });  // left of the cells
      copy.drawImage(document.querySelector("canvas.map"), 0, 0);
      const all = copy.getImageData(0, 0, 44, 400).data;
      const isDark = (i) => i % 4 === 3 && all[i] > 200 && all[i - 1] + all[i - 2] + all[i - 3] < 120;
      return all.reduce((dark, _, i) => dark + isDark(i), 0);
    }"""
    with opened(chromium, folder / "layers.html", color_scheme="dark") as page:
        assert page.evaluate(ink) == "rgb(236, 236, 243)"
        before = page.evaluate(pixel)
        page.emulate_media(media="print")
        settled(page)
        assert page.evaluate(ink) == "rgb(27, 28, 34)"
        assert page.evaluate(pixel) > before  # the labels of the map are dark now
        assert page.locator(".model").is_hidden()
