"""Content of the question bank: questions of the documents, our own, and experiments that confirm the answers."""

import io
import re
import tomllib
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

import pytest

from regard.course.catalogue import entry
from regard.course.lessons import lessons
from regard.course.questions import FOLDER, LEVELS, Question, questions, topics

BANK = questions()
FILES = sorted(FOLDER.glob("*.toml"))
SIXTEEN = {"001-q1", "001-q1.1"} | {f"001-q{n}" for n in range(2, 10)}
SIXTEEN |= {"002-q1", "002-q1.1", "002-q1.2", "003-q1", "003-q2", "003-q3"}
KEYS = {"id", "from", "level", "lesson", "exercise", "experiment", "en", "zh"}
BY_HEAD = {"0.001", "0.0625"}
"""Numbers that no experiment prints: a bound, and 1/16."""

each = pytest.mark.parametrize("one", BANK, ids=[one.id for one in BANK])
in_each_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


@dataclass(frozen=True)
class Run:
    """The output of an experiment, and its time in seconds."""

    printed: str
    seconds: float


@cache
def run(experiment: str) -> Run:
    """Run once each in a separate namespace; warnings are errors as in every test."""
    page, start = io.StringIO(), process_time()
    with redirect_stdout(page):
        exec(experiment, {})
    return Run(page.getvalue(), process_time() - start)


def test_the_bank_contains_all_questions_of_the_documents() -> None:
    sources = [one.source for one in BANK]
    assert len(SIXTEEN) == 16
    assert sorted(source for source in sources if source != "ours") == sorted(SIXTEEN)
    assert sources.count("ours") >= 26
    assert len(BANK) >= 92


@in_each_file
def test_every_file_has_the_expected_format(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(text.splitlines()) <= 400
    table = tomllib.loads(text)
    assert set(table) == {"title", "question"}
    assert set(table["title"]) == {"en", "zh"}
    for row in table["question"]:
        assert set(row) == KEYS, row["id"]
        assert row["level"] in LEVELS, row["id"]
        assert set(row["en"]) == set(row["zh"]) == {"ask", "short", "deep"}, row["id"]


def test_topics_are_the_files_and_every_level_has_questions() -> None:
    assert list(topics()) == [path.stem for path in FILES]
    assert {one.topic for one in BANK} == set(topics())
    for titles in zip(*topics().values(), strict=True):
        assert len(set(titles)) == len(FILES)
    assert all(sum(one.level == level for one in BANK) >= 10 for level in LEVELS)


@each
def test_a_question_has_a_lesson_and_an_exercise(one: Question) -> None:
    assert one.lesson in {lesson.number for lesson in lessons()}
    assert entry(one.exercise)


def test_no_question_is_asked_twice() -> None:
    for lang in ("en", "zh"):
        asked = [one.text(lang).ask for one in BANK]
        assert len(set(asked)) == len(asked)
    assert len({one.experiment for one in BANK}) == len(BANK)


@each
def test_answers_have_the_expected_length(one: Question) -> None:
    """The short answer is about 80 words or 150 Chinese characters; the detailed one has two to four paragraphs."""
    assert 12 <= len(one.en.short.split()) <= 80
    assert 30 <= len(one.zh.short) <= 200
    assert "\n" not in one.en.short + one.zh.short
    assert all(2 <= len(told.deep.split("\n\n")) <= 4 for told in (one.en, one.zh))
    assert one.en.ask[-1] in "?."
    assert one.zh.ask[-1] in "？。"


@each
def test_an_experiment_is_short_and_prints(one: Question) -> None:
    lines = one.experiment.strip().splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 76, "indented by four, it stands whole on 80 columns"
    assert "torch" not in one.experiment
    assert run(one.experiment).printed.strip()


@each
def test_the_numbers_of_the_answers_are_those_of_the_experiment(one: Question) -> None:
    """Every number with three or more decimals is printed by the experiment, up to rounding; English only."""
    found = re.findall(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?", run(one.experiment).printed)
    printed = [float(number) for number in found]
    for told in re.findall(r"\d+\.\d{3,}", f"{one.en.short} {one.en.deep}"):
        half_a_digit = 0.5001 * 10.0 ** -len(told.partition(".")[2])
        assert told in BY_HEAD or any(abs(number - float(told)) <= half_a_digit for number in printed), told


def test_all_experiments_together_are_fast() -> None:
    seconds = {one.id: run(one.experiment).seconds for one in BANK}
    assert max(seconds.values()) < 1.5, seconds
    assert sum(seconds.values()) < 5, seconds
