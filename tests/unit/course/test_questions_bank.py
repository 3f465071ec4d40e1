"""The question bank: format, links and experiments, in both languages."""

import re
import subprocess
import sys

import pytest

from regard.course.catalogue import entries
from regard.course.questions import IN_OWN_WORDS, Question, question, questions
from regard.errors import UnknownNameError
from regard.messages import LANGUAGES, use_language

BANK = questions()
IDS = [one.id for one in BANK]
CJK = re.compile("[\u3400-\u9fff]")


def test_ids_are_unique_and_well_formed() -> None:
    assert len(set(IDS)) == len(IDS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one) for one in IDS)


def test_questions_of_the_check_list_come_first_then_by_lesson() -> None:
    assert tuple(IDS[:3]) == IN_OWN_WORDS
    assert [one.lesson for one in BANK[3:]] == sorted(one.lesson for one in BANK[3:])


def test_the_check_list_contains_the_three_interview_questions() -> None:
    assert {one.id for one in BANK if one.source.startswith("002-")} == set(IN_OWN_WORDS)
    assert len(IN_OWN_WORDS) == 3


@pytest.mark.parametrize("one", BANK, ids=IDS)
def test_every_question_has_a_lesson_exercise_and_experiment(one: Question) -> None:
    assert one.source == "ours" or re.fullmatch(r"00[0-4]-q\d+(\.\d+)?", one.source)
    assert one.exercise in {row.id for row in entries()}
    assert one.lesson >= 1


def test_questions_lead_to_the_exercise_of_their_subject() -> None:
    """They led to the nearest exercise that existed when they were written: byte-pair-encoding to label-smoothing."""
    leads = {one.id: one.exercise for one in BANK}
    exercises = {row.id for row in entries()}
    assert all(leads[same] == same for same in leads.keys() & exercises)
    assert leads["byte-pair-encoding"] == "bpe-merges"
    assert leads["lstm-gates"] == "lstm-cell"
    assert leads["warm-up"] == "bug-no-warm-up"
    assert leads["induction-heads"] == "induction-by-hand"
    assert leads["top-k-and-top-p"] == "sampling"


@pytest.mark.parametrize("one", BANK, ids=IDS)
def test_both_languages_have_the_same_content(one: Question) -> None:
    for part in ("ask", "short", "deep"):
        en, zh = getattr(one.en, part), getattr(one.zh, part)
        assert en.count("\n\n") == zh.count("\n\n"), part
        assert CJK.search(zh), part
        assert not re.search(r"[\u3400-\u9fff][,;:!?]", zh), part
        # Both languages contain the same numbers.
        assert sorted(re.findall(r"\d+\.\d+", en)) == sorted(re.findall(r"\d+\.\d+", zh)), part
    for lang in LANGUAGES:
        printed = one.text(lang)
        assert "\n" not in printed.ask
        assert len(printed.short) < len(printed.deep)


def test_every_experiment_runs_and_prints() -> None:
    """All in one process, each in a separate namespace."""
    program = "import sys\nfor text in sys.stdin.read().split('\\0'):\n    exec(text, {})\n    print('\\0', end='')\n"
    given = "\0".join(one.experiment for one in BANK)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], input=given, capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\0")[:-1]
    assert len(printed) == len(BANK)
    assert all(text.strip() for text in printed), dict(zip(IDS, printed, strict=True))


def test_the_current_language_is_used() -> None:
    with use_language("zh"):
        assert BANK[0].text() == BANK[0].zh
    assert BANK[0].text() == BANK[0].en


def test_an_unknown_question_suggests_the_closest() -> None:
    assert question("Why_sqrt-d-k").id == "why-sqrt-d-k"
    with pytest.raises(UnknownNameError, match="did you mean why-sqrt-d-k"):
        question("why-sqrt-dk")
    with pytest.raises(UnknownNameError) as caught:
        question("zzz")
    for lang in LANGUAGES:
        assert "regard learn ask --list" in caught.value.text(lang)
