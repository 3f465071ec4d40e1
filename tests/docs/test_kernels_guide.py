"""docs/kernels: every block works as it stands, the numbers in its prose are the code's, both languages agree."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from pages import Page, spans

from regard import Mask, See, backends
from regard.axes import bin_width
from regard.kernels.triton.blocks import WIDEST
from regard.kernels.triton.refusal import DTYPES, MOST, OLDEST
from regard.words import LANGUAGES, Language, speaking

ROOT = Path(__file__).parents[2]
GUIDE = Page("docs/kernels.md", "docs/kernels.zh-CN.md")
EACH = pytest.mark.parametrize("lang", LANGUAGES)


@EACH
def test_the_code_prints_what_it_says(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    GUIDE.run(lang, monkeypatch)


@EACH
def test_the_table_is_what_backends_say_on_a_gpu(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.dispatch.torch_backends.refusal", lambda *_, **__: None)  # as if there were one
    q, k, v = torch.zeros(3, 1, 4, 2048, 64)
    with speaking(lang):
        assert GUIDE.blocks(lang, "text") == [f"{backends(q, k, v, mask=Mask.causal(), see=See(map=256))}\n"]


@EACH
def test_numbers_in_the_prose_are_those_of_the_code(lang: Language) -> None:
    words = GUIDE.prose(lang)
    assert re.findall(r"(?:capability|不低于) (\d\.\d)|(?:below|GPU 低于) (\d\.\d)", words) == [
        ("8.0", ""),
        ("", "8.0"),
    ]
    assert OLDEST == (8, 0)
    assert re.findall(r"(?:wider than|头宽超过) (\d+)", words) == [str(WIDEST)]
    assert re.findall(r"`top` (?:above|超过) (\d+)", words) == [str(MOST)]
    assert all(str(dtype).removeprefix("torch.") in words for dtype in DTYPES)
    assert bin_width(5000, 157) == 32
    crew = runpy.run_path(str(ROOT / "src/regard/kernels/triton/hopper/crew.py"))  # its room would import Triton
    assert re.findall(r"(\d+) (?:or|或) (\d+)(?: wide|，值)", words) == [tuple(map(str, crew["WIDTHS"]))]
    tiles = {(str(crew["KEYS"]), str(crew["ROWS"]))}
    assert set(re.findall(r"(\d+) (?:keys and|个键、)\s?(\d+) (?:queries|个查询)", words)) == tiles


@EACH
def test_what_is_named_is_there(lang: Language) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE.prose(lang)):
        assert (ROOT / "docs" / target).exists(), target
    for span in spans(GUIDE.prose(lang)):
        if span.startswith(("src/", "tests/")):
            assert (ROOT / span).exists(), span


def test_both_languages_have_the_same_code_commands_and_rows() -> None:
    commands = [re.sub(r" *#.*", "", "".join(GUIDE.blocks(lang, "bash"))) for lang in LANGUAGES]
    assert commands[0] == commands[1]
    GUIDE.assert_same_code()
    GUIDE.assert_same_marks(r"^#+(?= )", r"^\|(?=.)|(?<=.)\|", r"^- ", r"<!-- figures -->", r"\]\(([^)]+)\)")
    GUIDE.assert_same_names()
    GUIDE.assert_chinese_punctuation()
