"""The generation panel in a browser: the slider, candidates, beams and the alignment with a source text."""

import pytest
from browsing import browser_page, settled
from playwright.sync_api import Browser, Page

from explorer_examples import ALIGNED, NEXT, SOURCE, TARGET, continuation, translation
from explorer_pages import MadeUp, open_explorer
from regard import Trace
from regard.messages import LANGUAGES, Language, say

pytestmark = pytest.mark.web

PANEL = ".generation-panel"


def current(page: Page) -> str:
    return page.inner_text(f"{PANEL} .generation-text .current")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_slider_moves_by_keyboard(chromium: Browser, lang: Language) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, translation(), depth="head", view="generation", written=0, lang=lang)
        assert current(page) == TARGET[1]
        page.locator(f"{PANEL} .generation-bar input").focus()
        page.keyboard.press("ArrowRight")
        settled(page)
        assert current(page) == TARGET[2]
        assert page.inner_text(f"{PANEL} .generation-bar output") == say(
            "explorer-generation-place", lang, at=2, count=5
        )
        page.keyboard.press("End")
        settled(page)
        assert current(page) == TARGET[5]
        assert page.evaluate("view.state.get().query") == 4  # the row that wrote the last token
        page.wait_for_function(f"view.state.get().key === {ALIGNED[4]}")  # and what it read most


def test_prompt_and_answer_are_apart(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, continuation(), depth="head", view="generation", written=1)
        prompt, answer = page.locator(f"{PANEL} .generation-part").all()
        assert prompt.locator("bdi").all_inner_texts() == ["once", "upon", "a"]
        assert answer.locator("bdi").all_inner_texts() == ["time", "there", "was"]
        shaded = page.locator(f"{PANEL} bdi[style*=background]").all_inner_texts()
        assert shaded == ["once", "upon", "a", "time"]  # what the framed token read
        assert page.locator(f"{PANEL} .ahead").all_inner_texts() == ["was"]
        assert page.locator(f"{PANEL} .generation-likely").is_hidden()


def test_the_selected_row_of_the_map_is_the_written_token(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, continuation(), depth="head", view="generation")
        page.evaluate("view.update({ query: 2, key: 0 })")
        settled(page)
        assert current(page) == "time"


def test_likely_tokens_have_their_probabilities(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, translation(), depth="head", view="generation", written=1)
        rows = page.locator(f"{PANEL} .generation-likely li").all_inner_texts()
        assert [row.split("\n")[0] for row in rows] == [TARGET[2], "的", "我", "all other tokens"]
        assert [row.split("\n")[1] for row in rows] == ["60\u00a0%", "25\u00a0%", "6.0\u00a0%", "9.0\u00a0%"]
        assert page.inner_text(f"{PANEL} .generation-likely .chosen bdi") == TARGET[2]


@pytest.mark.parametrize(("key", "T"), [("End", 2.0), ("Home", 0.5)])
def test_at_another_temperature_the_probabilities_are_those_over_the_whole_vocabulary(
    chromium: Browser, key: str, T: float
) -> None:
    expected = NEXT ** (1 / T) / (NEXT ** (1 / T)).sum()
    with browser_page(chromium) as page:
        open_explorer(page, translation(), depth="head", view="generation", written=1)
        assert page.locator(f"{PANEL} .before").count() == 0
        page.locator(f"{PANEL} .generation-likely input").focus()
        page.keyboard.press(key)
        settled(page)
        assert page.evaluate("view.state.get().temperature") == T
        assert page.inner_text(f"{PANEL} .generation-likely output") == f"{T:.1f}"
        widths = page.locator(f"{PANEL} .bar-row i:not(.before)").evaluate_all(
            "(all) => all.map((one) => parseFloat(one.style.inlineSize) / 100)"
        )
        assert widths == pytest.approx([*expected[:3], expected[3:].sum()], abs=1e-6)
        marks = page.locator(f"{PANEL} .before").evaluate_all(
            "(all) => all.map((one) => parseFloat(one.style.inlineSize))"
        )
        assert marks == pytest.approx([60, 25, 6, 9])


def test_a_temperature_whose_sums_are_unknown_counts_as_one(chromium: Browser) -> None:
    made_up = translation()
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="generation", temperature=0.7)
        assert page.inner_text(f"{PANEL} .generation-likely output") == "1.0"
        assert page.locator(f"{PANEL} .before").count() == 0
    made_up.overview["generation"] |= {"temperatures": None}
    with browser_page(chromium) as page:
        open_explorer(page, made_up, depth="head", view="generation", temperature=2)
        assert page.locator(f"{PANEL} .generation-likely input").is_hidden()
        assert "60\u00a0%" in page.inner_text(f"{PANEL} .generation-likely")


def test_cross_attention_is_drawn_as_an_alignment(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, translation(), depth="head", view="generation", written=3)
        left, right = (page.locator(f"{PANEL} .alignment ol").nth(i).locator("li") for i in range(2))
        assert left.all_inner_texts() == SOURCE
        assert right.all_inner_texts() == TARGET[1:]
        assert page.locator(f"{PANEL} .alignment path").count() == 4  # one for each token written so far
        assert page.locator(f"{PANEL} .alignment ol:first-child .now").all_inner_texts() == [SOURCE[ALIGNED[3]]]


def test_beams_are_distinguished(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, translation(), depth="head", view="generation", written=1)
        beams = page.locator(f"{PANEL} .generation-beams li")
        assert beams.count() == 2
        assert beams.nth(0).locator(".differs").count() == 0
        assert beams.nth(1).locator(".differs").all_inner_texts() == ["今日"]
        assert beams.nth(1).locator(".beam-score").inner_text() == "−3.02"


def test_play_moves_on_by_itself_and_stops(chromium: Browser) -> None:
    with browser_page(chromium, reduced_motion="no-preference") as page:
        open_explorer(page, translation(), depth="head", view="generation", written=3)
        page.click(f"{PANEL} .generation-bar button")
        page.wait_for_function("document.querySelector('.generation-text .current').textContent === '</s>'")
        page.wait_for_function("document.querySelector('.generation-bar button').textContent === 'Play'")


def test_with_reduced_motion_the_button_moves_one_token(chromium: Browser) -> None:
    with browser_page(chromium, reduced_motion="reduce") as page:
        open_explorer(page, translation(), depth="head", view="generation", written=0)
        assert page.inner_text(f"{PANEL} .generation-bar button") == "Next"
        page.click(f"{PANEL} .generation-bar button")
        page.wait_for_timeout(1000)
        assert current(page) == TARGET[2]


def test_without_a_generation_there_is_no_panel(chromium: Browser) -> None:
    with browser_page(chromium) as page:
        open_explorer(page, MadeUp(Trace.from_weights([[[1.0]]], ["a"])), depth="head", view="generation")
        assert page.locator(PANEL).is_hidden()
