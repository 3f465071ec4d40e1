"""What is saved: every view as a picture for a paper and as numbers, whatever the window and the theme."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from browsing import browser_page, opened, settled
from PIL import Image
from playwright.sync_api import Browser, Page

import explorer_examples as examples
from explorer_pages import MadeUp, open_explorer
from regard import Trace
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer import front
from regard.views.explorer.still import FONTS

pytestmark = pytest.mark.web

HEAD = {"depth": "head", "layer": 0, "head": 2, "query": 7, "key": 2}
VIEWS: dict[str, tuple[Callable[[], MadeUp], dict[str, Any]]] = {
    "map": (examples.patterned, HEAD | {"pins": [[7, 2]]}),
    "lines": (examples.patterned, HEAD | {"view": "lines", "heads": [1, 2]}),
    "lines across": (examples.patterned, HEAD | {"view": "lines", "lines": "horizontal"}),
    "sentence": (examples.patterned, HEAD | {"view": "sentence"}),
    "stripes": (examples.patterned, HEAD | {"view": "sentence", "heads": [0, 2, 3]}),
    "compare": (examples.patterned, HEAD | {"view": "compare"}),
    "difference": (examples.patterned, HEAD | {"view": "compare", "compareAs": "difference"}),
    "maps": (examples.patterned, {"depth": "model"}),
    "pattern": (examples.patterned, {"depth": "model", "show": "pattern"}),
    "entropy": (examples.patterned, {"depth": "model", "show": "entropy", "sort": "measure"}),
    "numbers": (lambda: examples.wide_head()[0], {"depth": "numbers", "numbersStep": 10}),
    "generation": (examples.translation, {"depth": "head", "view": "generation", "written": 2}),
    "image": (examples.picture, {"depth": "head", "query": 1, "key": 0}),
    "effect": (examples.with_effects, {"depth": "head", "query": 2, "key": 1}),
}
WORDS = {
    "map": ["query", "key", "figure-weight", "masked", "scale-note-auto"],
    "lines": ["query", "key", "head", "figure-lines"],
    "lines across": ["query", "key", "figure-lines"],
    "sentence": ["figure-weight", "masked"],
    "stripes": ["head", "words-stripes"],
    "compare": ["query", "key", "figure-weight", "masked"],
    "difference": ["query", "key", "figure-difference"],
    "maps": ["layer", "head", "family-induction", "figure-maps"],
    "pattern": ["layer", "head", "family-induction", "figure-pattern"],
    "entropy": ["show-entropy", "figure-sorted"],
    "numbers": ["numbers-key", "numbers-column-weights", "numbers-total"],
    "generation": ["generation-prompt", "generation-answer", "generation-likely", "generation-alignment"],
    "image": ["figure-image"],
    "effect": ["effect-bars", "effect-honest"],
}
"""Messages that each picture contains."""
BESIDE = ("image", "effect")
NARROW, WIDE, MARGIN = 340, 700, 12


def show(page: Page, name: str, **options: Any) -> None:
    make, state = VIEWS[name]
    open_explorer(page, make(), **state, **options)
    if name == "effect":
        page.locator(".effect-buttons button").first.click()
        page.wait_for_selector(".effect-kl")
    settled(page)


def save(page: Page, kind: str, what: str = "") -> str | bytes:
    """The file that an item of the menu saves."""
    page.click(".save")
    page.wait_for_selector(".items option", state="attached")
    if what in BESIDE:
        page.select_option(".items select", what)
    with page.expect_download() as download:
        page.click(f'[data-text="save-{kind}"]')
    data = download.value.path().read_bytes()
    return data if kind == "png" else data.decode()


@pytest.mark.parametrize("name", VIEWS)
def test_a_picture_is_the_same_in_every_window_and_theme_and_not_that_of_the_map(chromium: Browser, name: str) -> None:
    with browser_page(chromium, 1400, 900) as page:
        show(page, name, theme="light")
        wide = str(save(page, "svg", name))
        assert page.get_attribute(".regard-explorer", "data-theme") == "light"
    with browser_page(chromium, 560, 700) as page:
        show(page, name, theme="dark")
        narrow = str(save(page, "svg", name))
        table = str(save(page, "csv", name))
        assert page.get_attribute(".regard-explorer", "data-theme") == "dark"
        page.evaluate("view.update({ depth: 'head', view: 'map' })")
        settled(page)
        map_, weights = str(save(page, "svg")), str(save(page, "csv"))
    assert narrow == wide
    assert_names_what_is_drawn(wide, name, "en")
    root = ElementTree.fromstring(narrow)
    assert root.attrib["font-family"] == FONTS
    assert int(root.attrib["width"]) - 2 * MARGIN in (NARROW, WIDE)
    background = root.find("{*}rect")
    assert background is not None
    assert background.attrib["fill"] == "rgb(255, 255, 255)"
    assert (narrow == map_, table == weights) == ((True, True) if name == "map" else (False, False))


@pytest.mark.parametrize("name", VIEWS)
def test_a_chinese_picture_names_its_axes_and_what_its_colours_mean(chromium: Browser, name: str) -> None:
    with browser_page(chromium, 900, 800) as page:
        show(page, name, lang="zh")
        assert_names_what_is_drawn(str(save(page, "svg", name)), name, "zh")


def assert_names_what_is_drawn(svg: str, name: str, lang: Language) -> None:
    found = re.sub(r"\s", "", "".join(ElementTree.fromstring(svg).itertext()))
    for key in WORDS[name]:
        assert re.sub(r"\s", "", say(f"explorer-{key}", lang)) in found, key


@pytest.mark.parametrize("name", ["map", "numbers", "image"])
def test_a_png_has_twice_the_pixels_of_the_svg_and_its_colours(chromium: Browser, name: str) -> None:
    with browser_page(chromium, 700, 800, device_scale_factor=1.5) as page:
        show(page, name, theme="dark")
        png, root = save(page, "png", name), ElementTree.fromstring(str(save(page, "svg", name)))
    assert isinstance(png, bytes)
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.size == (2 * int(root.attrib["width"]), 2 * int(root.attrib["height"]))
        assert picture.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 8


def test_the_fonts_are_those_of_the_picture_without_scripts() -> None:
    assert f'"{FONTS}"' in (front.FOLDER / "figures.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_pooled_map_says_the_size_of_a_cell(chromium: Browser, lang: Language) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, examples.pooled(), depth="head", lang=lang)
        saved = "".join(ElementTree.fromstring(str(save(page, "svg"))).itertext())
    assert say("explorer-figure-cell", lang, high=512, wide=512).split(":")[0].split("：")[0] in saved


# --- numbers ------------------------------------------------------------------------------------------------


def rows_of(text: str | bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(str(text))))


def test_the_weights_of_a_map_are_saved_as_they_are(chromium: Browser, layers: Trace, folder: Path) -> None:
    weights = layers[1].weights()[0, 3]
    with opened(chromium, folder / "layers.html", "layer=1&head=3") as page:
        table = list(csv.reader(io.StringIO(str(save(page, "csv")))))
        found = json.loads(save(page, "json"))
    assert table[0][1:] == ["床", "前", "明", "月", "光"]
    np.testing.assert_allclose(np.array([line[1:] for line in table[1:]], float), weights, atol=1e-3)
    assert (found["layer"], found["head"], found["keys"]) == ("h.1.attn", 3, table[0][1:])
    np.testing.assert_allclose(found["weights"], weights, atol=1e-3)


def test_numbers_of_the_model_are_those_of_all_heads(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        show(page, "entropy")
        rows, found = rows_of(save(page, "csv")), json.loads(save(page, "json"))
    assert [(row["layer"], row["head"]) for row in rows] == [
        (f"h.{layer}.attn", str(head)) for layer in range(3) for head in range(4)
    ]
    assert rows[2]["pattern"] == "induction"
    assert float(rows[0]["entropy"]) >= 0
    assert [row["head"] for row in found["rows"]] == [0, 1, 2, 3] * 3


def test_numbers_of_a_comparison_hold_both_sides_and_the_difference(chromium: Browser) -> None:
    weights = np.asarray(examples.patterned().trace[0].weights())[0].astype(np.float16).astype(float)
    with browser_page(chromium) as page:
        show(page, "compare")
        rows = rows_of(save(page, "csv"))
    assert len(rows) == weights[2].size
    for name, wanted in {"head 2": weights[2], "head 3": weights[3], "difference": weights[3] - weights[2]}.items():
        np.testing.assert_allclose([float(row[name]) for row in rows], wanted.ravel(), atol=2e-4)


def test_numbers_of_lines_are_the_lines_that_are_drawn(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        show(page, "lines")
        rows = rows_of(save(page, "csv"))
        told = page.inner_text(".lines-panel > .quiet")
    assert told.startswith(f"{len(rows)} lines")
    assert {row["head"] for row in rows} == {"1", "2"}


def test_numbers_of_a_sentence_are_the_weights_of_its_words(chromium: Browser) -> None:
    weights = np.asarray(examples.patterned().trace[0].weights())[0, 2, 7]
    with browser_page(chromium) as page:
        show(page, "sentence")
        rows = rows_of(save(page, "csv"))
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights, atol=1e-3)


def test_a_sentence_of_several_heads_has_a_stripe_and_a_column_for_each(chromium: Browser) -> None:
    weights = np.asarray(examples.patterned().trace[0].weights())[0][[0, 2, 3], 7]
    with browser_page(chromium) as page:
        show(page, "stripes")
        words = page.locator(".words:visible span")
        strength = words.evaluate_all(
            "(all) => all.map(({ style: { background } }) => "
            "[...background.matchAll(/([\\d.]+)%, transparent/g)].map((found) => Number(found[1])))"
        )
        titles = words.evaluate_all("(all) => all.map((one) => one.title)")
        assert page.locator(".chips:visible [aria-pressed=true]").all_inner_texts() == ["0", "2", "3"]
        assert page.locator(".sentence-panel .legend").is_hidden()
        assert say("explorer-words-stripes", "en") in page.inner_text(".sentence-panel")
        rows = rows_of(save(page, "csv"))
        lines = ElementTree.fromstring(save(page, "svg")).findall(".//{*}polyline[@stroke-width='4']")
        page.locator(".chips:visible button").nth(0).click()
        page.locator(".chips:visible button").nth(3).click()
        settled(page)
        assert page.locator(".sentence-panel .legend").is_visible()
        assert [row["weight"] for row in rows_of(save(page, "csv"))] == [row["head 2"] for row in rows]
    levels = np.sqrt(weights)  # of three heads, whose largest weights are near 1
    shown = np.array(strength)[:, ::2]  # the browser writes both ends of a gradient
    np.testing.assert_allclose(shown.T / 100, levels, atol=0.03)
    for head, row in zip(("0", "2", "3"), weights, strict=True):
        np.testing.assert_allclose([float(one[f"head {head}"]) for one in rows], row, atol=1e-3)
        told = [float(re.findall(rf"head {head}: (\S+)", title)[0]) for title in titles]
        np.testing.assert_allclose(told, row, atol=1e-3)
    drawn = [float(line.attrib["stroke-opacity"]) for line in lines]
    np.testing.assert_allclose(np.array(drawn).reshape(-1, 3).T, levels, atol=0.03)


def test_lines_of_a_note_do_not_begin_with_punctuation_that_closes(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        show(page, "stripes", lang="zh")
        texts = ElementTree.fromstring(save(page, "svg")).findall(".//{*}text[@font-size='11']")
    notes = [text.text or "" for text in texts if text.text]
    assert "".join(notes).endswith("。")
    assert not any(note[0] in "，。；：" for note in notes)


def test_numbers_of_a_query_are_the_table_up_to_its_step(chromium: Browser) -> None:
    _, calculation = examples.wide_head()
    with browser_page(chromium) as page:
        show(page, "numbers")
        rows, found = rows_of(save(page, "csv")), json.loads(save(page, "json"))
        page.evaluate("view.update({ numbersStep: 2 })")
        settled(page)
        early = rows_of(save(page, "csv"))
    order = np.sort(np.argsort(-calculation.weights[-1], kind="stable")[:12])
    np.testing.assert_allclose([float(row["weights"]) for row in rows], calculation.weights[-1, order], rtol=1e-12)
    np.testing.assert_allclose([float(row["k[63]"]) for row in rows], calculation.k[order, 63], rtol=1e-12)
    np.testing.assert_allclose(found["totals"]["output"], calculation.output[-1], rtol=1e-12)
    assert "scores" in early[0]
    assert "weights" not in early[0]


def test_numbers_of_a_generation_are_what_was_read_and_what_was_likely(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        show(page, "generation")
        rows = rows_of(save(page, "csv"))
    assert [row["token"] for row in rows] == [*examples.SOURCE, examples.TARGET[3], "的", "我", "all other tokens"]
    assert [float(row["value"]) for row in rows] == pytest.approx(
        [0.02, 0.02, 0.94, 0.02, 0.6, 0.25, 0.06, 0.09], abs=1e-3
    )


def test_numbers_of_a_picture_and_of_an_effect(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        show(page, "image")
        rows = rows_of(save(page, "csv", "image"))
        assert [float(row["weight"]) for row in rows] == pytest.approx(examples.READ[1].tolist(), abs=1e-3)
        assert (rows[5]["row"], rows[5]["column"]) == ("1", "2")
    with browser_page(chromium) as page:
        show(page, "effect")
        found = json.loads(save(page, "json", "effect"))
    assert found["kl"] == 0.312
    assert found["rows"][0] == {"kind": "next token", "token": "mat", "before": 0.52, "value": 0.22}


# --- nothing to save ----------------------------------------------------------------------------------------


def test_what_cannot_be_saved_cannot_be_chosen(chromium: Browser, folder: Path) -> None:
    items = "() => [...document.querySelectorAll('.items button')].map((one) => [one.dataset.text, one.disabled])"
    with opened(chromium, folder / "layers.html", "depth=numbers") as page:  # q and k were not kept
        page.click(".save")
        page.wait_for_selector(".items button:disabled")
        closed = {name for name, disabled in page.evaluate(items) if disabled}
        assert closed == {"save-png", "save-svg", "save-csv", "save-json"}
        page.keyboard.press("Escape")
        page.evaluate("() => { location.hash = 'view=map' }")
        settled(page)
        page.click(".save")
        page.wait_for_selector(".items button:enabled")
        assert page.locator(".items select").is_hidden()  # there is no picture and no effect


@pytest.mark.parametrize("width", [320, 390, 1180])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_menu_stays_on_the_screen(chromium: Browser, lang: Language, width: int) -> None:
    with browser_page(chromium, width) as page:
        show(page, "map", lang=lang)
        page.click(".save")
        items = page.locator(".items").bounding_box()
        assert items
        assert items["x"] >= 0
        assert items["x"] + items["width"] <= width


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_saved_model_names_the_kinds_of_attention_under_the_whole_text(chromium: Browser, lang: Language) -> None:
    weights, text = np.full((1, 3, 3), 1 / 3), "the cat sat on the mat because " * 5
    trace = Trace([Trace.from_weights(weights, name=f"{kind}.0", kind=kind)[0] for kind in ("encoder", "cross")])
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace, overview={"texts": [text, ""]}), depth="model", lang=lang)
        root = ElementTree.fromstring(str(save(page, "svg")))
        saved = [one.text or "" for one in root.iter() if one.tag.endswith("text")]
        assert [
            one for one in saved if one in {say(f"explorer-kind-{kind}", lang) for kind in ("encoder", "cross")}
        ] == [
            say("explorer-kind-encoder", lang),
            say("explorer-kind-cross", lang),
        ]
        assert text.strip() in " ".join(saved)
