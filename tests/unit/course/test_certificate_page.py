"""The page of a certificate: complete, inert, in both languages, and the same for the same content."""

import re
from html.parser import HTMLParser

import pytest

from regard.course.catalogue import entry
from regard.course.certificate import Certificate, PassedItem, digest, page
from regard.messages import LANGUAGES, Language

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


def made(lang: Language = "en", name: str = "Ada Lovelace", answer: str | None = "x = 1\n") -> Certificate:
    items = (
        PassedItem("softmax", "2026-01-02T03:04:05+00:00", answer, None if answer is None else digest(answer)),
        PassedItem("rope", "2026-03-04T00:00:00+00:00", None, None),
    )
    counts = {"exercise": (2, 54), "lesson": (3, 12), "question": (4, 100)}
    about = {"written_at": "2026-03-05T00:00:00+00:00", "regard": "0.1.0", "minutes": 90}
    return Certificate(name=name, language=lang, items=items, counts=counts, **about)  # type: ignore[arg-type]


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_says_what_was_passed_when_and_with_which_answer(lang: Language) -> None:
    text = Elements(page(made(lang))).text
    for one in ("softmax", "rope"):
        assert one in text
        assert getattr(entry(one).title, lang) in text
    assert "2026-01-02" in text
    assert digest("x = 1\n")[:16] in text
    assert "regard learn certificate --verify" in text
    assert "Ada Lovelace" in text
    assert ("not signed" if lang == "en" else "没有签名") in text
    assert (
        "from 2 January 2026 to 4 March 2026" if lang == "en" else "从 2026 年 1 月 2 日到 2026 年 3 月 4 日"
    ) in text
    assert ("answer not kept" if lang == "en" else "未保存答案") in text


def test_hostile_names_and_answers_are_inert() -> None:
    text = page(made(name=EVIL, answer=EVIL))
    elements = Elements(text)
    assert EVIL in elements.text
    scripts = [attributes for tag, attributes in elements.found if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "certificate"}]
    assert not [tag for tag, _ in elements.found if tag in ("img", "iframe", "link", "object", "form", "a")]
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]


def test_nothing_is_loaded_and_no_script_may_run() -> None:
    text = page(made())
    policy = re.search('Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"https?:|url\(|@import", text)
    assert not re.search(r"<[^>]* style=", text), "the policy forbids it"


def test_both_colour_schemes_and_paper() -> None:
    text = page(made())
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_a_page_without_a_name_has_no_line_for_it() -> None:
    assert 'class="name"' not in page(made(name=""))
    assert page(made()) == page(made())
