"""Content of the question bank: questions of the documents, our own, and experiments that confirm the answers.

The mock interview: which questions it chooses, and what its summary reports.
"""

import ast
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
from regard.course.progress import Rating
from regard.course.questions import (
    FOLDER,
    LEVELS,
    LIMITS,
    Question,
    RatedAnswer,
    interview_questions,
    question,
    questions,
    summary,
    time_limit,
    topic_named,
    topics,
)
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import LANGUAGES

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


LONGER = {
    "adamw": 7,  # both moments and their corrections are the algorithm
    "byte-pair-encoding": 6,  # count, choose, join and show, in a loop
    "transformer-or-rnn": 6,  # the state and the derivative are updated together
}
"""Experiments of more than five lines, and why."""


@each
def test_an_experiment_is_short_and_prints(one: Question) -> None:
    """Five lines beside the imports, without two statements in a line."""
    lines = one.experiment.strip().splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    assert len(lines) - len(imports) <= LONGER.get(one.id, 5)
    assert len(imports) <= 3
    assert max(map(len, lines)) <= 76, "indented by four, it stands whole on 80 columns"
    statements = [node for node in ast.walk(ast.parse(one.experiment)) if isinstance(node, ast.stmt)]
    assert len({node.lineno for node in statements}) == len(statements)
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


def test_a_seed_gives_the_same_questions_and_another_seed_others() -> None:
    assert interview_questions(10, seed=1) == interview_questions(10, seed=1)
    assert interview_questions(10, seed=1) != interview_questions(10, seed=2)


@pytest.mark.parametrize("seed", range(5))
def test_questions_differ_get_harder_and_come_from_many_topics(seed: int) -> None:
    chosen = interview_questions(10, seed)
    assert len({one.id for one in chosen}) == len({one.topic for one in chosen}) == 10
    assert [one.level for one in chosen] == sorted(one.level for one in chosen)
    everything = interview_questions(len(topics()) + 5, seed)
    assert {one.topic for one in everything} == set(topics())


def test_topic_and_level_restrict_the_choice() -> None:
    for level in LEVELS:
        assert {one.level for one in interview_questions(10, 0, level=level)} == {level}
    for topic in topics():
        assert {one.topic for one in interview_questions(3, 0, topic=topic)} == {topic}
    both = interview_questions(10, 0, "serving", 3)
    assert {(one.topic, one.level) for one in both} == {("serving", 3)}
    assert len(both) < 10, "fewer than asked for, if there are no more"


def test_every_question_can_be_asked() -> None:
    assert set(interview_questions(1000, 0)) == set(questions())


def test_a_topic_without_questions_of_the_level_lists_its_levels() -> None:
    with pytest.raises(ArgumentError, match="shapes has no question of level 3; its levels: 1, 2"):
        interview_questions(10, 0, "shapes", 3)


def test_a_topic_is_found_by_name_and_title() -> None:
    assert topic_named(" Masks ") == topic_named("掩码") == "masks"
    for asked, text in (("mask", "did you mean masks"), ("zzz", "choose one of: decoding, formula")):
        with pytest.raises(UnknownNameError, match=text) as caught:
            topic_named(asked)
        for lang in LANGUAGES:
            assert "training" in caught.value.text(lang)


def test_limits_add_up() -> None:
    chosen = interview_questions(10, 0)
    assert time_limit(chosen) == sum(LIMITS[one.level] for one in chosen)
    assert set(LIMITS) == set(LEVELS)


def answer(id: str, rating: Rating, seconds: float | None = None) -> RatedAnswer:
    return RatedAnswer(question(id), rating, seconds)


def test_summary() -> None:
    result = summary(
        [
            answer("why-residuals", "good", 30.0),
            answer("swiglu", "unsure", 100.0),
            answer("adamw", "again", 200.0),
            answer("lora", "again", 10.0),
            answer("mask-polarity", "unsure", 10.0),
        ]
    )
    assert result.ratings == {"good": 1, "unsure": 2, "again": 2}
    assert result.score == 40, "unsure counts half"
    assert (result.seconds, result.limit, result.over_limit) == (350.0, 120 + 4 * 180, 1)
    assert result.weakest == ("optimisation", "models", "masks"), "three of four; layers has 75 %"
    assert result.lessons == (4, 7, 8, 10)
    assert result.exercises == ("swiglu", "bug-no-warm-up", "self-attention", "bug-mask-polarity")


def test_summary_of_good_answers_asks_for_nothing() -> None:
    result = summary([answer("lora", "good"), answer("adamw", "good")])
    assert result.score == 100
    assert result.seconds is None
    assert (result.weakest, result.lessons, result.exercises) == ((), (), ())


def test_summary_of_nothing() -> None:
    assert (summary([]).score, summary([]).limit, summary([]).seconds) == (0, 0, None)
