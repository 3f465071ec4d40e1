"""mount in a real browser: scales and pooling equal to Python's, two views on one page, sources, failures."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import opened
from playwright.sync_api import Browser, Page

from regard import Trace
from regard.messages import LANGUAGES, Language, say
from regard.trace.pooling import pool_at
from regard.trace.trace import ScaleName
from regard.views.colours import Scale
from regard.views.explorer import front
from regard.views.explorer.overview import words as shown_words
from regard.views.explorer.source import TraceSource
from regard.views.picture import picture, rescaled

pytestmark = pytest.mark.web

PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>{style}</style></head><body>
<div id="one"></div><div id="two"></div><p class="failure">shown at the end</p>
<script>const before = new Set(Object.getOwnPropertyNames(window)); window.front = {{}};</script>
<script type="module">
{script}
Object.assign(window.front, {{ {names} }});
</script></body></html>"""
NAMES = "mount, scaleFor, withoutFirst, poolAt, answerFromBytes, floats, widgetSource, cached, before"
STORED = """(answers) => {
  const answer = (name) => {
    const bytes = Uint8Array.from(atob(answers[name]), (sign) => sign.charCodeAt(0));
    return Promise.resolve(front.answerFromBytes(bytes.buffer));
  };
  return { overview: () => answer("overview"), head: ({ layer, head }) => answer(`head-${layer}-${head}`) };
}"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with the functions of the front end and nothing mounted."""
    path = tmp_path_factory.mktemp("bare") / "bare.html"
    script = front.script("widget.js").replace("export default", "const widget =")
    path.write_text(PAGE.format(style=front.style(), script=script, names=NAMES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bare_page(chromium: Browser, bare: Path) -> Iterator[Page]:
    """That page, open for all tests that only call its functions."""
    with opened(chromium, bare) as page:
        yield page


def cells_of(weights: np.ndarray, first: float | None = None) -> dict[str, Any]:
    """Cells as the front end has them; a function in the page makes typed arrays of them."""
    R, C = weights.shape
    starts = {"rowStarts": list(range(R + 1)), "colStarts": list(range(C + 1))}
    shares = {"firstColumn": 0, "first": first, "even": 1 / C}
    return starts | shares | {"R": R, "C": C, "values": weights.ravel().tolist(), "attending": [1] * R}


TYPED = """({ values, attending, ...rest }) => (
  { ...rest, values: Float32Array.from(values), attending: Int32Array.from(attending) })"""


def weights_of(seed: int, length: int, sink: float) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(length, length)) * 3
    scores[:, 0] += sink
    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True), np.float32)


@pytest.mark.parametrize("name", ["auto", "linear", "log", "hidden", "renormalised"])
@pytest.mark.parametrize(("length", "sink"), [(3, 0.0), (9, 6.0), (40, 0.0), (40, 9.0), (64, 4.0)])
def test_scales_equal_those_of_python(bare_page: Page, name: ScaleName, length: int, sink: float) -> None:
    weights = weights_of(length, length, sink)
    drawn = picture(Trace.from_weights(weights)[0], 0, 0)
    scale = Scale.of([rescaled(drawn, name)])
    values = [0.0, 1e-6, 0.001, 0.02, 0.1, 0.33, 0.9, 1.0]
    found = bare_page.evaluate(
        f"""([cells, name, values]) => {{
          const scale = front.scaleFor(name, [front.withoutFirst(({TYPED})(cells), name)]);
          return {{ ceiling: scale.ceiling, threshold: scale.logThreshold, clipped: scale.clipped,
            levels: values.map(scale.level) }};
        }}""",
        [cells_of(weights, drawn.first) | {"even": drawn.even_share}, name, values],
    )
    assert (found["ceiling"], found["clipped"]) == (pytest.approx(scale.ceiling), scale.clipped)
    assert found["threshold"] == (None if scale.log_threshold is None else pytest.approx(scale.log_threshold, rel=1e-5))
    np.testing.assert_allclose(found["levels"], [float(scale.level(value)) for value in values], rtol=1e-5)


def test_pooling_equals_that_of_python(bare_page: Page) -> None:
    weights, counts = weights_of(1, 11, 2.0), np.array([1, 2, 0, 1, 1, 3, 1, 1, 0, 1, 1])
    rows, cols = [0, 2, 3, 7], [0, 1, 5, 9, 10]
    pooled, total = pool_at(weights, counts, np.array(rows), np.array(cols))
    found = bare_page.evaluate(
        f"""([cells, rows, cols]) => {{
          const {{ values, attending, rowStarts, colStarts }} = front.poolAt(({TYPED})(cells), rows, cols);
          return [...[values, attending, rowStarts, colStarts].map((all) => Array.from(all))];
        }}""",
        [cells_of(weights) | {"attending": counts.tolist()}, rows, cols],
    )
    np.testing.assert_allclose(np.reshape(found[0], pooled.shape), pooled, rtol=1e-6)
    assert (found[1], found[2], found[3]) == (total.tolist(), [*rows, 11], [*cols, 11])


# --- several mounts -----------------------------------------------------------------------------------------


def answers(trace: Trace, lang: Language) -> dict[str, str]:
    source = TraceSource(trace, lang=lang)
    found = {"overview": source.overview()}
    for layer, record in enumerate(trace):
        for head in range(record.shape[1]):
            found[f"head-{layer}-{head}"] = source.head(layer, head)
    return {name: base64.b64encode(answer.binary()).decode() for name, answer in found.items()}


def mounted(page: Page, place: str, stored: dict[str, str], **options: Any) -> None:
    page.evaluate(
        f"""async ([place, stored, options]) => {{
          const element = document.getElementById(place);
          window.changes ??= {{ one: [], two: [] }};
          element.addEventListener("regard-change", ({{ detail }}) => window.changes[place].push(detail.head));
          (window.views ??= {{}})[place] = await front.mount(element, ({STORED})(stored), options);
        }}""",
        [place, stored, options],
    )
    page.wait_for_timeout(200)


def test_two_views_on_one_page_are_independent(chromium: Browser, bare: Path, layers: Trace) -> None:
    with opened(chromium, bare) as page:
        mounted(page, "one", answers(layers, "en"))
        mounted(page, "two", answers(layers, "zh"), theme="dark", open=[1, 3])
        titles = page.locator("h1").all_inner_texts()
        assert titles == [say("explorer-title", lang) for lang in LANGUAGES]
        page.focus("#two .map")
        before = page.inner_text("#one")
        for key in ("]", "c", "l"):
            page.keyboard.press(key)
        page.wait_for_timeout(200)
        assert page.inner_text("#one") == before
        assert page.inner_text("#two .heading h2").endswith("head 0")
        assert page.evaluate("window.changes.two.at(-1)") == 0
        page.evaluate("window.views.two.unmount()")
        assert page.evaluate("document.getElementById('two').childElementCount") == 0
        added = page.evaluate("Object.getOwnPropertyNames(window).filter((name) => !front.before.has(name))")
        assert sorted(added) == ["changes", "front", "views"]


# --- sources and failures -----------------------------------------------------------------------------------


def test_the_widget_source_sends_requests_and_reads_buffers(chromium: Browser, bare: Path) -> None:
    with opened(chromium, bare) as page:
        found = page.evaluate(
            """async () => {
              let listener; const sent = [];
              const model = { on: (_, fn) => { listener = fn; }, off() {}, send: (message) => sent.push(message) };
              const source = front.cached(front.widgetSource(model));
              const two = [source.head({ layer: 0, head: 1 }), source.head({ layer: 0, head: 1 })];
              const failed = source.explain({ layer: 0, head: 0, query: 1, most: 4 }).catch((error) => error.text.en);
              listener({ id: sent[1].id, error: { key: "x", text: { en: "not kept", zh: "" } } }, []);
              const bytes = new Uint8Array(new Uint16Array([0, 0x3c00, 0x3555]).buffer);
              const arrays = [{ name: "cells", dtype: "f2", shape: [3] }];
              listener({ id: sent[0].id, about: { R: 1 }, arrays }, [new DataView(bytes.buffer)]);
              const [one, other] = await Promise.all(two);
              const cells = Array.from(front.floats(one.arrays.cells));
              return { sent, same: one === other, about: one.about, cells, failed: await failed };
            }"""
        )
    assert [message["ask"] for message in found["sent"]] == ["head", "explain"]
    assert (found["same"], found["about"], found["failed"]) == (True, {"R": 1}, "not kept")
    np.testing.assert_array_equal(np.array(found["cells"], np.float16), np.array([0, 1, 0.3333], np.float16))


EMPTY = json.dumps({"version": 1, "records": [], "words": shown_words()}, ensure_ascii=False)
"""The overview of a trace without records."""


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("({ about: { version: 99, records: [] }, arrays: {} })", {"en": "version 99", "zh": "99"}),
        (f"({{ about: {EMPTY}, arrays: {{}} }})", {"en": "nothing to draw", "zh": "没有可画"}),
        ("{ throw { key: 'k', text: { en: 'kernel left', zh: '内核已关闭' } }; }", {"en": "kernel left", "zh": "内核"}),
    ],
)
def test_a_failure_is_one_sentence_in_the_picture_s_place(
    chromium: Browser, bare: Path, lang: str, answer: str, words: dict[str, str]
) -> None:
    with opened(chromium, bare) as page:
        page.evaluate(
            f"front.mount(document.getElementById('one'), {{ overview: async () => {answer} }}, {{ lang: '{lang}' }})"
        )
        page.wait_for_selector("#one .failure")
        assert words[lang] in page.inner_text("#one .failure")
