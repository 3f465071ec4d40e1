"""The effect panel in a browser: a head silenced, an edge cut, weights times norms."""

from typing import Any

import numpy as np
import pytest
from browsing import browser_page
from playwright.sync_api import Browser

from explorer_examples import EVERYTHING, WORDS, with_effects
from explorer_pages import MadeUp, open_explorer
from regard import Trace
from regard.messages import LANGUAGES, Language, say
from regard.views.explorer.answers import Answer
from regard.views.explorer.source import TraceSource

pytestmark = pytest.mark.web

PANEL = ".effect-panel"
TRACE = with_effects().trace


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_head_is_silenced_by_a_click(chromium: Browser, lang: Language) -> None:
    made_up = with_effects()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", lang=lang)
        page.click(f"text={say('explorer-effect-silence', lang)}")
        page.wait_for_selector(f"{PANEL} .effect-kl")
        assert made_up.asked[-1] == ("effect", {"silence": {"layer": 0, "head": 0}})
        rows = page.locator(f"{PANEL} .effect-result li").all_inner_texts()
        assert [" ".join(row.split()) for row in rows] == ["mat 52 % → 22 %", "bed 8.0 % → 38 %", "sofa – → 5.0 %"]
        assert page.inner_text(f"{PANEL} .effect-kl").startswith("KL = 0.312")
        assert page.inner_text(f"{PANEL} .effect-honest") == say("explorer-effect-honest", lang)


def test_the_selected_edge_is_cut_by_keyboard(chromium: Browser) -> None:
    made_up = with_effects()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", query=2, key=1)
        page.locator(f"{PANEL} .effect-buttons button >> nth=1").focus()
        assert page.inner_text(f"{PANEL} button:focus") == "Cut sat → cat"
        page.keyboard.press("Enter")
        page.wait_for_selector(f"{PANEL} .effect-kl")
        assert made_up.asked[-1] == ("effect", {"cut": {"layer": 0, "head": 0, "query": 2, "key": 1}})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_without_a_model_one_sentence_says_how_to_get_it(chromium: Browser, lang: Language) -> None:
    record = {"can": EVERYTHING | {"effect": False}}
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(TRACE, record=record), depth="head", lang=lang)
        assert page.locator(f"{PANEL} .effect-buttons").is_hidden()
        assert say("explorer-effect-how", lang) in page.inner_text(PANEL)


def test_weights_times_norms_are_listed_where_norms_are_known(chromium: Browser) -> None:
    norms = np.array([0.1, 1.0, 4.0], np.float32)

    def head(request: dict[str, Any]) -> Answer:
        found = TraceSource(TRACE).head(**request)
        return Answer(found.about | {"norms": "output"}, found.arrays | {"norms": norms})

    with browser_page(chromium) as page:
        made_up = MadeUp(TRACE, record={"can": EVERYTHING}, requests={"head": head})
        open_explorer(page, made_up, depth="head", query=2, key=0)
        rows = [text.split() for text in page.locator(f"{PANEL} .effect-norms li").all_inner_texts()]
        assert rows == [["sat", "0.800"], ["cat", "0.300"], ["the", "0.0500"]]


def test_the_model_shows_and_sorts_the_effect_of_every_head(chromium: Browser) -> None:
    kl = [0.02, 0.5, 0.1]

    def effect(request: dict[str, Any]) -> Answer:
        return Answer({"before": [], "after": [], "kl": kl[request["silence"]["head"]], "position": 2})

    trace = Trace.from_weights(np.stack([np.asarray(TRACE[0].weights())[0, 0]] * 3), WORDS)
    made_up = MadeUp(trace, record={"can": EVERYTHING}, requests={"effect": effect})
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="model", show="effect", sort="measure")
        page.wait_for_function("document.querySelector('.tile .value').textContent === '0.50'")
        assert page.locator(".tile .value").all_inner_texts() == ["0.50", "0.10", "0.02"]
        assert [request for ask, request in made_up.asked if ask == "effect"] == [
            {"silence": {"layer": 0, "head": head}} for head in range(3)
        ]
