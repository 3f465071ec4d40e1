"""The lessons: both languages alike, every block of Python run, every exercise that they send to there."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, Page, printed_lines

from regard.config.recurrent import RecurrentConfig
from regard.course.catalogue import entries
from regard.course.drawings import measured
from regard.course.lessons import Lesson, lesson, lessons
from regard.messages import LANGUAGES, Language
from regard.recipes.recipe import config_of, read_recipe

FOLDER = "src/regard/course/lessons"
LENGTH = range(1_500, 3_001)
"""Chinese characters of a lesson."""


def page(lesson: Lesson) -> Page:
    return Page(f"{FOLDER}/{lesson.path('en').name}", f"{FOLDER}/{lesson.path('zh').name}")


def test_there_are_twelve_in_order() -> None:
    assert [lesson.number for lesson in lessons()] == list(range(1, 13))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_blocks_print_what_they_say(lesson: Lesson, lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    both = page(lesson)
    if lang == "en" or not both.prints_the_same():
        both.run(lang, monkeypatch)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_both_languages_say_the_same(lesson: Lesson) -> None:
    both = page(lesson)
    both.assert_same_code()
    both.assert_same_names()
    both.assert_chinese_punctuation()
    assert both.blocks("en", "bash") == both.blocks("zh", "bash")
    headings, boxes = r"^(#+) ", r"^> \*\*(?:Correction\.|更正)\*\*"
    both.assert_same_marks(headings)
    assert (
        len(re.findall(boxes, both.text("en"), re.MULTILINE))
        == len(re.findall(boxes, both.text("zh"), re.MULTILINE))
        > 0
    )


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_exercises_are_those_of_the_list(lesson: Lesson, lang: Language) -> None:
    starts = re.findall(
        r"`regard learn start ([a-z-]+)`((?:[,、，] ?(?:then |再做 )?`[a-z-]+`)*)", page(lesson).prose(lang)
    )
    named = [name for first, rest in starts for name in (first, *re.findall(r"`([a-z-]+)`", rest))]
    assert sorted(named) == sorted(row.id for row in entries() if row.lesson == lesson.number)


def picture_names(lesson: Lesson, lang: Language) -> list[str]:
    return re.findall(rf"^!\[[^\]]+\]\(pictures/([a-z-]+)\.{lang}\.svg\)$", page(lesson).text(lang), re.MULTILINE)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_both_languages_show_the_same_pictures(lesson: Lesson) -> None:
    english = picture_names(lesson, "en")
    assert english == picture_names(lesson, "zh")
    assert len(english) >= 3
    for lang in LANGUAGES:
        assert len(picture_names(lesson, lang)) == page(lesson).text(lang).count("![")
        assert all((ROOT / FOLDER / f"pictures/{name}.{lang}.svg").is_file() for name in english)


def characters(markdown: str) -> int:
    """Chinese characters and punctuation marks, and each number or foreign word as one; without code and pictures."""
    text = re.sub(r"^```.*?^```$|!\[[^\]]*\]\([^)]*\)|`[^`]*`|\s+", " ", markdown, flags=re.DOTALL | re.MULTILINE)
    return len(
        re.findall(r"[\u4e00-\u9fff，。！？；：“”（）、《》…—·]|[^\s\u4e00-\u9fff，。！？；：“”（）、《》…—·]+", text)
    )


def test_characters_are_counted_without_code_and_pictures() -> None:
    shown = "词元，`softmax` 有 64 个 head。\n\n![图](pictures/a.zh.svg)\n\n```python\nprint(1)\n```\n"
    assert characters(shown) == 8


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_length(lesson: Lesson) -> None:
    assert characters(page(lesson).text("zh")) in LENGTH


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_its_time_is_stated_by_the_path_only(lesson: Lesson, lang: Language) -> None:
    introduction = page(lesson).prose(lang).split("\n## ")[0]
    assert not re.search(r"\bminutes?\b|\bhours?\b|分钟|小时", introduction)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_lesson_1_names_the_head_that_it_found(lang: Language) -> None:
    both = page(lesson("why-attention"))
    printed = " ".join(line for block in both.blocks(lang, "python") for line in printed_lines(block))
    (found,) = re.findall(r"layer (\d+) head (\d+)", printed)
    (named,) = re.findall(r"`regard see --kind encoder --layer (\d+) --head (\d+) [^`]+`", both.prose(lang))
    assert named == found


# --- lesson 9: figures in its prose --------------------------------------------------------------------------


def numbers(pattern: str, lang: Language) -> list[float]:
    """The numbers in the one match of a pattern in the prose of lesson 9."""
    prose = re.sub(r"\s+", " ", page(lesson("rnn-against-transformer")).prose(lang))
    (found,) = re.findall(pattern, prose)
    return [float(one.replace(",", "")) for one in ([found] if isinstance(found, str) else found)]


PATTERNS: dict[str, dict[Language, str]] = {
    "steps": {"en": r"the same ([\d,]+) steps", "zh": r"训练同样的 ([\d,]+) 步"},
    "trial steps": {"en": r"validation loss after ([\d,]+) steps", "zh": r"训练 ([\d,]+) 步后的验证损失"},
    "parameters": {"en": r"Five models of ([\d,]+) parameters", "zh": r"五个模型各约 ([\d.]+) 万参数"},
    "translator steps": {"en": r"the same data, ([\d,]+) steps", "zh": r"数据相同，([\d,]+) 步"},
    "untrained steps": {"en": r"the source in ([\d,]+) steps", "zh": r"([\d,]+) 步之内没有学会读原文"},
    "shared rate": {
        "en": r"BLEU if both had the Transformer's, ([\d]+\.\d+)",
        "zh": r"Transformer 的学习率 ([\d.]+)，",
    },
    "GPU": {"en": r"\(([\d,]+) times at ([\d,]+) words\)", "zh": r"（([\d,]+) 个词时相差 ([\d,]+) 倍）"},
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_figures_of_lesson_9_are_measured(lang: Language) -> None:
    found = {name: numbers(pattern[lang], lang) for name, pattern in PATTERNS.items()}
    report: dict[str, Any] = measured("rnn")
    recall, small = report["recall"], report["translation"]["multi30k-en-de, small"]
    training = report["time on a GPU"]["training"]["a batch"]
    times = training["LSTM"]["2048"] / training["Transformer"]["2048"]
    assert found["steps"] == [recall["steps"]]
    assert found["trial steps"] == [recall["trial_steps"]]
    stated = found["parameters"][0] * (1 if lang == "en" else 10_000)
    assert all(row["parameters"] == pytest.approx(stated, rel=0.03) for row in recall["models"].values())
    assert found["translator steps"] == found["untrained steps"] == [small["steps"]]
    assert found["shared rate"] == [small["models"]["Transformer"]["lr"]]
    assert sorted(found["GPU"]) == [round(times), 2048]


def test_the_recipe_of_lesson_9_is_one(tmp_path: Path) -> None:
    (table,) = page(lesson("rnn-against-transformer")).blocks("en", "toml")
    assert page(lesson("rnn-against-transformer")).blocks("zh", "toml") == [table]
    copy = (ROOT / "src/regard/recipes/catalogue/copy.toml").read_text(encoding="utf-8")
    before, after = re.split(r"^\[model\]\n(?:.+\n)+", copy, flags=re.MULTILINE)
    path = tmp_path / "lstm.toml"
    path.write_text(before + table + after, encoding="utf-8")
    config = config_of(read_recipe(str(path)), vocab_size=30)
    assert isinstance(config, RecurrentConfig)
    assert tomllib.loads(table)["model"]["attention"] == config.attention


def test_every_exercise_belongs_to_a_lesson() -> None:
    assert {row.lesson for row in entries()} <= {lesson.number for lesson in lessons()}
