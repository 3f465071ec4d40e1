"""The numbers panel in a browser: the same digits as `regard.explain`, step by step, by keyboard alone."""

import contextlib
import io
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import browser_page, opened, settled
from playwright.sync_api import Browser, Page

import regard
from explorer_examples import TEXT, WORDS, K, Q, V, hand_made, wide_head
from explorer_pages import MadeUp, open_explorer
from regard import Mask, See, Trace
from regard.attention_call import WeightsFromQK
from regard.hand_calculation.steps import spell
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer.answers import Answer
from regard.views.explorer.source import TraceSource

pytestmark = pytest.mark.web

PANEL = ".numbers-panel"


def shown(text: str) -> str:
    """A number of the panel as Python writes it."""
    return text.replace("−", "-").replace("∞", "inf").replace("NaN", "nan")


def column(page: Page, name: str) -> list[list[str]]:
    """The numbers of a column, one list for each key."""
    cells = page.locator(f"{PANEL} td[data-column={name}][data-row]:not([data-row=top], [data-row=total]) ").all()
    return [[shown(text) for text in cell.locator("span:not(:has(span))").all_inner_texts()] for cell in cells]


def total(page: Page, name: str) -> list[str]:
    cell = page.locator(f"{PANEL} td[data-column={name}][data-row=total] span:not(:has(span))")
    return [shown(text) for text in cell.all_inner_texts()]


def heading(page: Page) -> str:
    return page.inner_text(f"{PANEL} h3")


def test_numbers_are_written_as_python_writes_them(chromium: Browser) -> None:
    draw = random.Random(0)
    bits = [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(300)]
    values = [0.0, -0.0, 1.0, 0.5, 2 / 3, 16.04447, 0.99999, 3e-7, 0.1, 1e6, 999999.99999, float("inf"), float("nan")]
    values += [j / 32 for j in range(-64, 64)] + [draw.gauss(0, 3) for _ in range(300)] + bits
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers")
        texts = page.evaluate("(texts) => texts.map((text) => spell(Number(text)))", [js_number(x) for x in values])
    assert [shown(text) for text in texts] == [spell(x) for x in values]


def js_number(x: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(x), repr(x))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_space_walks_through_the_calculation_of_explain(chromium: Browser, lang: Language) -> None:
    mask = np.tril(np.ones((3, 3), bool))
    steps = regard.explain(Q, K, V, mask)
    query = 1
    names = {"scores": "scores", "scaled": "scaled", "masked": "masked", "shifted": "shifted", "powers": "powers"}
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=query, lang=lang)
        assert heading(page) == say("explorer-numbers-heading-vectors", lang)
        page.locator(f"{PANEL} td[tabindex='0']").focus()
        titles = [heading(page)]
        for _ in range(20):
            page.keyboard.press("Space")
            settled(page)
            if heading(page) != titles[-1]:
                titles.append(heading(page))
        assert len(titles) == 11
        for name, key in {**names, "weights": "weights"}.items():
            assert column(page, name) == [[spell(x)] for x in steps[key].values[query]], name
        assert column(page, "k") == [[spell(x) for x in row] for row in K]
        assert column(page, "products") == [[spell(x) for x in row] for row in K * Q[query]]
        assert column(page, "weighted") == [
            [spell(x) for x in w * v] for w, v in zip(steps.weights[query], V, strict=True)
        ]
        assert total(page, "powers") == [spell(float(steps["sums"].values[query, 0]))]
        assert total(page, "weighted") == [spell(x) for x in steps.output[query]]
        page.keyboard.press("Shift+Space")
        settled(page)
        assert heading(page) == titles[-2]


def test_columns_appear_with_their_step(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2)
        visible = f"{PANEL} thead th:visible"
        assert page.locator(visible).count() == 2
        page.click("text=Next step")
        settled(page)
        assert page.locator(visible).all_inner_texts() == ["key", "k", "q × k"]
        assert page.get_by_role("button", name="multiply").get_attribute("aria-current") == "step"
        page.click("text=Back")
        settled(page)
        assert page.locator(visible).count() == 2


def lit(page: Page) -> set[str]:
    """The cells from which the current cell was computed."""
    cells = page.locator(f"{PANEL} td.lit").all()
    return {f"{cell.get_attribute('data-column')} {cell.get_attribute('data-row')}" for cell in cells}


def test_a_cell_lights_the_cells_it_came_from(chromium: Browser) -> None:
    with browser_page(chromium, 1600) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2, numbersStep=9)
        page.hover(f"{PANEL} td[data-column=weights][data-row='1']")
        assert lit(page) == {"powers 1", "powers total"}
        page.hover(f"{PANEL} td[data-column=powers][data-row=total]")
        assert lit(page) == {"powers 0", "powers 1", "powers 2"}
        page.hover(f"{PANEL} td[data-column=products][data-row='0'] span >> nth=1")
        assert lit(page) == {"k top", "k 0"}
        assert page.locator(f"{PANEL} .strip-numbers .lit").count() == 3  # one dimension of each of them
        page.locator(f"{PANEL} td[data-column=scores][data-row='2']").focus()
        assert lit(page) == {"products 2"}
        assert shown(page.inner_text(".numbers-readout .formula")) == "1·1 + 1·0.5 = 1.5"


def test_arrow_keys_move_through_vectors_and_cells(chromium: Browser) -> None:
    with browser_page(chromium, 1600) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2, numbersStep=2)

        def press(key: str) -> str:
            page.keyboard.press(key)
            return page.evaluate("`${document.activeElement.dataset.column} ${document.activeElement.dataset.row}`")

        page.locator(f"{PANEL} td[data-column=k][data-row='0']").focus()
        assert press("ArrowUp") == "k top"
        assert press("ArrowDown") == "k 0"
        assert press("ArrowRight") == "k 0"  # the next dimension
        assert "[1]" in page.inner_text(".numbers-readout")
        assert press("ArrowRight") == "products 0"
        assert press("Control+ArrowRight") == "scores 0"
        assert press("ArrowRight") == "scores 0"  # the next column is not reached yet
        assert press("ArrowDown") == "scores 1"


CLIPBOARD = """
Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
"""
"""A page without an address has no clipboard."""


def test_the_code_is_copied_and_gives_the_same_output(chromium: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2)
        page.evaluate(CLIPBOARD)
        page.click("text=Copy as NumPy")
        page.wait_for_function("document.querySelector('.numbers-code button').textContent === 'Copied'")
        code = page.evaluate("window.copied")
    namespace: dict[str, np.ndarray] = {}
    exec(code, namespace)  # the code that a person would paste
    assert capsys.readouterr().out.startswith("weights")
    np.testing.assert_array_equal(namespace["output"][0], regard.explain(Q[2:], K, V).output[0])


def test_without_a_clipboard_the_code_is_shown_and_selected(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2)
        page.click("text=Copy as NumPy")
        settled(page)
        assert page.inner_text(".numbers-code code").startswith("import numpy as np")
        assert page.evaluate("String(getSelection())").startswith("import numpy as np")


def test_a_wide_head_shows_strips_and_the_numbers_of_one_dimension(chromium: Browser) -> None:
    made_up, c = wide_head()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="numbers", numbersStep=1)
        query = len(TEXT) - 1
        assert page.locator(f"{PANEL} td[data-column=k] svg").count() == 13  # q and the twelve most relevant keys
        top = int(np.argmax(c.weights[query]))
        product = c.q[query] * c.k[top]
        at = int(np.argmax(np.abs(product)))
        expected = f"{spell(c.q[query, at])} · {spell(c.k[top, at])} = {spell(product[at])}"
        assert shown(page.inner_text(".numbers-readout .formula")).replace("(", "").replace(")", "") == expected
        page.evaluate("view.update({ numbersStep: 20 })")
        settled(page)
        kept = np.sort(np.argsort(-c.weights[query], kind="stable")[:12])
        assert column(page, "weights") == [[spell(x)] for x in c.weights[query, kept]]
        assert total(page, "powers") == [spell(float(c.sums[query, 0]))]
        rest = page.inner_text(f"{PANEL} .rest-row")
        assert say("explorer-numbers-others", "en", count=8) in rest
        assert spell(1 - c.weights[query, kept].sum()) in rest
        assert spell(c.output[query, np.argmax(np.abs(c.output[query]))]) in shown(page.inner_text(".numbers-readout"))


def test_a_head_of_the_bundled_translator_shows_the_numbers_of_explain(chromium: Browser) -> None:
    trace = regard.load("translator").see("The weather is nice today.").trace
    layer = next(at for at, record in enumerate(trace) if record.kind == "cross")
    exact = trace[layer].exact
    assert isinstance(exact, WeightsFromQK)
    q, k, v = (np.asarray(x, np.float64)[0, 1] for x in (exact.q, exact.k, exact.v))
    steps = regard.explain(q, k, v)
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace), depth="numbers", layer=layer, head=1, query=2, numbersStep=20)
        keys = np.sort(np.argsort(-steps.weights[2], kind="stable")[:12])
        for name, key in {"scores": "scores", "scaled": "scaled", "powers": "powers", "weights": "weights"}.items():
            assert column(page, name) == [[spell(x)] for x in steps[key].values[2, keys]], name
        assert total(page, "powers") == [spell(float(steps["sums"].values[2, 0]))]
        at = int(np.argmax(np.abs(steps.output[2])))
        assert f"[{at}]" in page.inner_text(".numbers-readout")
        assert shown(page.inner_text(".numbers-readout")).endswith(f"= {spell(steps.output[2, at])}")


@pytest.mark.parametrize("step", range(10))
def test_every_step_fits_a_narrow_screen(chromium: Browser, step: int) -> None:
    made_up, _ = wide_head(128)
    with browser_page(chromium, 320, 700) as page:
        open_explorer(page, made_up, depth="numbers", numbersStep=step)
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        scroll = page.locator(".numbers-scroll")
        assert scroll.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0


def test_the_query_can_be_chosen(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2)
        page.select_option(f"{PANEL} select", "0")
        settled(page)
        assert page.inner_text(f"{PANEL} .query-row th").split() == ["q", WORDS[0]]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_step_is_announced_in_words(chromium: Browser, lang: Language) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, hand_made(), depth="numbers", query=2, lang=lang)
        page.click(f"text={say('explorer-numbers-next', lang)}")
        page.wait_for_timeout(300)
        spoken = page.text_content("[aria-live=polite].sr") or ""
        assert say("explorer-numbers-step-products", lang) in spoken


# --- files --------------------------------------------------------------------------------------------------

STAGES = {"scores": "dots", "scaled": "scaled", "masked": "masked", "powers": "exps", "weights": "weights"}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"mask": Mask.causal()},
    "softcap": {"softcap": 1.5, "mask": Mask.causal()},
    "scale": {"scale": 0.2},
    "bias": {"bias": np.linspace(-2, 2, 81, dtype=np.float32).reshape(9, 9)},
    "masked": {"mask": Mask.of(np.arange(9)[:, None] * np.ones(9) > 3)},  # the first queries see nothing
}


def recorded(T: int, E: int = 4, **options: Any) -> Trace:
    rng = np.random.default_rng(T)
    q, k, v = (rng.standard_normal((1, heads, T, E), dtype=np.float32) for heads in (4, 2, 2))
    if T > 64:
        q[0, 0, 1:] = 3 * np.repeat(k, 2, 1)[0, 0, :-1]  # a head with a pattern
    _, record = regard.attend(q, k, v, see=See(qk=True, v=True), **options)
    tokens = [f"t{i}" for i in range(T)]
    return Trace(record.named("h.0.attn", "decoder").with_tokens(tokens, tokens))


def saved_numbers(page: Page) -> dict[str, Any]:
    page.click(".save")
    page.wait_for_selector(".items option", state="attached")
    with page.expect_download() as download:
        page.click('[data-text="save-json"]')
    found: dict[str, Any] = json.loads(download.value.path().read_text(encoding="utf-8"))
    return found


def number(x: Any) -> float:
    return -np.inf if x is None else float(x)


def assert_as_python(found: dict[str, Any], wanted: Answer) -> None:
    for column_, name in STAGES.items():
        if column_ in found["rows"][0]:
            ours = [number(row[column_]) for row in found["rows"]]
            np.testing.assert_allclose(ours, wanted.arrays[name], rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(found["totals"]["sum"], np.atleast_1d(wanted.arrays["sum"]), rtol=1e-12)
    np.testing.assert_allclose(found["totals"]["output"], wanted.arrays["output"], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_numbers_that_a_file_computes_are_those_of_python(chromium: Browser, name: str, tmp_path: Path) -> None:
    trace = recorded(9, **OPTIONS[name])
    trace.html(tmp_path / "page.html", lang="en")
    source = TraceSource(trace)
    with opened(chromium, tmp_path / "page.html", "depth=numbers&numbersStep=99") as page:
        for head, query in ((0, 8), (3, 4), (1, 0)):
            page.evaluate("(to) => { location.hash = to }", f"depth=numbers&numbersStep=99&head={head}&at={query}-0")
            settled(page)
            page.wait_for_timeout(100)
            assert_as_python(saved_numbers(page), source.explain(0, head, query, 12))
        code = page.text_content(".numbers-code code") or ""
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, namespace)  # the code that a person would paste
    np.testing.assert_allclose(namespace["weights"], source.explain(0, 1, 0).arrays["weights"], rtol=1e-12)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_file_of_a_longer_text_says_which_queries_it_holds(chromium: Browser, lang: Language, tmp_path: Path) -> None:
    trace = recorded(100, mask=Mask.causal())
    trace.html(tmp_path / "page.html", lang=lang)
    source = TraceSource(trace)
    opening = source.opening[1]
    with opened(chromium, tmp_path / "page.html", f"depth=numbers&numbersStep=99&head={opening}") as page:
        assert page.locator(f"{PANEL} table").is_visible()
        found, wanted = saved_numbers(page), source.explain(0, opening, 99, 12)
        assert_as_python(found, wanted)
        assert found["rest"]["keys"] == 88  # of all visible keys
        assert found["rest"]["weight"] == pytest.approx(wanted.about["rest"]["weight"], rel=1e-9)
        code = page.text_content(".numbers-code code") or ""
        offered = page.locator(f"{PANEL} select option").all_inner_texts()
        assert offered[-1] == "99 · t99"
        page.evaluate("(to) => { location.hash = to }", f"depth=numbers&head={opening}&at=50-0")
        settled(page)
        names = ", ".join(offered)
        assert page.inner_text(f"{PANEL} .problem") == say("explorer-numbers-other-queries", lang, queries=names)
        page.select_option(f"{PANEL} select", "99")  # the way to one of them
        settled(page)
        assert page.locator(f"{PANEL} table").is_visible()
        other = next(head for head in range(4) if head != opening and not source.patterns[0].score[head])
        page.evaluate("(to) => { location.hash = to }", f"depth=numbers&head={other}")
        settled(page)
        assert page.inner_text(f"{PANEL} .problem") == say("explorer-numbers-not-stored", lang)
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, namespace)
    np.testing.assert_allclose(namespace["weights"], source.explain(0, opening, 99).arrays["weights"], rtol=1e-12)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_q_and_k_one_sentence_says_what_to_do(chromium: Browser, lang: Language) -> None:
    trace = regard.Trace.from_weights(np.eye(3)[None], WORDS)
    none = {"rectangle": "none", "explain": "none", "effect": False}
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(trace, record={"can": none}), depth="numbers", lang=lang)
        assert page.inner_text(f"{PANEL} .problem") == say("explorer-numbers-not-kept", lang)
        assert page.locator(f"{PANEL} table").count() == 0
