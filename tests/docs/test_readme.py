"""The READMEs: every snippet runs and prints what it says, every command works, and both languages say the same."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from pages import Page, spans
from rich.cells import cell_len
from rich.text import Text

from regard.messages import LANGUAGES, Language

ROOT = Path(__file__).parents[2]
PAGE = Page("README.md", "README.zh-CN.md")
text, blocks, prose = PAGE.text, PAGE.blocks, PAGE.prose
LANGS = LANGUAGES
GUIDE = Page("docs/language.md", "docs/language.zh-CN.md")
LEARNING = Page("docs/learning.md", "docs/learning.zh-CN.md")
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = [f"{name}.{lang}.svg" for name in ("see", "rhyme", "handmade") for lang in LANGS]


def commands(lang: Language) -> list[str]:
    """Everything typed in a shell, without the remarks beside it."""
    lines = "".join(blocks(lang, "bash")).splitlines()
    return [shlex.join(shlex.split(line, comments=True)) for line in lines]


# --- what is written works --------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_snippets_print_what_they_say(lang: Language, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # one of them writes a page
    PAGE.run(lang, monkeypatch)


# Those that train write to runs/; they are commands of the guide, whose test runs them with fewer steps.
QUICK = [c for c in commands("en") if c.startswith(("regard ", "python ")) and " runs" not in c]


@pytest.mark.parametrize("command", QUICK)
def test_commands_work(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # the demonstrations save pictures where they are run
    program, *arguments = shlex.split(command)
    start = ["-m", "regard"] if program == "regard" else []
    done = subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_make_targets_and_extras_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [command.split() for command in commands("en")]
    targets = {words[1] for words in asked if words[0] == "make"}
    assert {"see", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for extras in re.findall(r"'\.\[(.*?)\]'", "".join(blocks("en", "bash"))):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    (oldest,) = re.findall(r"Python (\d\.\d+)", text("en"))
    assert project["requires-python"] == f">={oldest}"


@pytest.mark.parametrize("lang", LANGS)
def test_what_is_named_is_there(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", prose(lang)):
        assert (ROOT / target).exists(), target
    for span in spans(prose(lang)):
        if span.startswith(("src/", "tests/")):
            assert (ROOT / span).exists(), span


# --- both languages say the same --------------------------------------------------------------------------


def test_headings_tables_and_links_are_equal() -> None:
    PAGE.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|", r"^- ")
    english, chinese = (re.findall(r"\]\(((?!docs/pictures|#)[^)]+)\)", prose(lang)) for lang in LANGS)
    assert english[2:] == [link.replace(".zh-CN.md", ".md") for link in chinese[2:]]  # behind the links to both READMEs


@pytest.mark.parametrize("lang", LANGS)
def test_links_inside_the_page_lead_to_a_heading(lang: Language) -> None:
    headings = [heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)$", text(lang), re.MULTILINE)]
    links = re.findall(r"\]\(#([^)]+)\)", prose(lang))
    assert links
    assert set(links) <= set(headings)


@pytest.mark.parametrize("lang", LANGS)
def test_it_is_read_in_two_minutes(lang: Language) -> None:
    assert len(text(lang).splitlines()) <= 150


@pytest.mark.parametrize("lang", LANGS)
def test_the_verdict_is_that_of_the_guide(lang: Language) -> None:
    """The guide's test runs the check; here are the first line and the diagnosis of its output."""
    (verdict,) = blocks(lang, "text")
    first, dots, diagnosis = verdict.splitlines()
    assert dots == "…"
    assert {first, diagnosis} <= set(LEARNING.text(lang).splitlines())


def test_code_and_commands_are_equal() -> None:
    PAGE.assert_same_code()
    assert commands("en") == commands("zh")


def test_sections_name_the_same_things() -> None:
    PAGE.assert_same_names()


def test_chinese_has_chinese_punctuation() -> None:
    PAGE.assert_chinese_punctuation()


# --- the pictures -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", ROOT / "docs/pictures/draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def letters(svg: str) -> list[tuple[str, str, str]]:
    """Every letter with its place."""
    found = []
    for element in ET.fromstring(svg).iter(f"{SVG}text"):
        assert element.text is not None
        found += [
            (sign, x, element.attrib["y"]) for sign, x in zip(element.text, element.attrib["x"].split(), strict=True)
        ]
    return found


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_screen_of_today(draw: ModuleType, name: str) -> None:
    """If this fails: `python docs/pictures/draw.py`, and look at what it drew."""
    (screen,) = (screen for screen in draw.SCREENS if screen.file == name)
    assert f"(pictures/{name})" in GUIDE.text(screen.lang)
    now, kept = draw.printed(screen), (ROOT / "docs/pictures" / screen.file).read_text(encoding="utf-8")
    assert letters(draw.svg(now, screen.typed)) == letters(kept)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_needs_nothing_from_elsewhere(draw: ModuleType, name: str) -> None:
    svg = (ROOT / "docs/pictures" / name).read_text(encoding="utf-8")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg\")|@font-face|@import|url\(|<script|<image", svg)
    places = [(y, int(x), sign) for sign, x, y in letters(svg)]
    for (y, x, sign), (below, beside, _) in pairwise(places):
        assert below != y or beside >= x + draw.CELL * cell_len(sign), sign
    width = float(ET.fromstring(svg).attrib["width"])
    assert max(x + draw.CELL * cell_len(sign) for _, x, sign in places) <= width - draw.EDGE


@pytest.mark.parametrize("number", range(len(LANGS)))
def test_the_first_picture_is_of_make_see(draw: ModuleType, number: int) -> None:
    screen, page = draw.SCREENS[number], text(LANGS[number])
    assert screen[1:] == (LANGS[number], "make see", ("see",))
    assert re.findall(r"^!\[.*\]\((.*)\)$", page, flags=re.MULTILINE)[0] == f"docs/pictures/{screen.file}"
    assert page.index(screen.file) < page.index("make see") < page.index("\n## ")


def test_a_picture_lets_every_character_look_at_its_word(draw: ModuleType) -> None:
    """我 at I, 爱 at love, 你 at you: what the words below the picture say is what it shows."""
    lines = [line.split() for line in Text.from_ansi(draw.printed(draw.SCREENS[0])).plain.splitlines()]
    words = next(line for line in lines if line[:1] == ["I"] and "<eos>" in line)
    rows = {line[2]: [float(weight) for weight in line[3:]] for line in lines if line[1:2] == ["→"] and len(line) == 7}
    assert {row: words[int(np.argmax(weights))] for row, weights in rows.items()} == {
        "我": "I",
        "爱": "love",
        "你": "you",
        "<eos>": "<eos>",
    }


# --- make see ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "given", "shown"),
    [
        ("see", "", "I love you → "),
        ("see", "The cat's on the mat.", "The cat's on the mat. → "),
        ("rhyme", "", "故 → 乡        0.99 → 0.83"),
        ("rhyme", "日暮人归去，山高鸟不飞。举头望明月，低头思故", "故 → 衣        0.47 → 0.01"),
    ],
)
def test_make_hands_the_text_on(target: str, given: str, shown: str, tmp_path: Path) -> None:
    """What make would run, run: with nothing to install, and as one text, whatever a shell would make of it."""
    (tmp_path / "bin").mkdir()
    regard = tmp_path / "bin" / "regard"
    regard.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m regard "$@"\n', encoding="utf-8")
    regard.chmod(0o755)
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            target,
            "-o",
            f"{tmp_path}/.core",
            f"VENV={tmp_path}",
            *([f"TEXT={given}"] if given else []),
        ],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "MAKEFLAGS": ""},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert done.stdout.startswith(given)
