"""Every exercise of the catalogue: the stub fails, right answers pass, each mistake gets its own diagnosis.

Mostly in this process, which is quick; one of each also through the real sandbox.
"""

import doctest
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.course.catalogue import entries, exercise, folder
from regard.course.exercise import Call, CallResult, Exercise
from regard.course.grading.comparison import answer_difference
from regard.course.grading.diagnosis import GENERAL
from regard.course.grading.grader import grade
from regard.course.grading.sandbox import in_process
from regard.messages import LANGUAGES, catalogue

RIGHT = Path(__file__).parents[2] / "course" / "right"
PROGRAMS = [row for row in entries() if row.kind != "sheet"]
CODE = [row.id for row in PROGRAMS]
every_code = pytest.mark.parametrize("name", CODE)
every_exercise = pytest.mark.parametrize("name", [row.id for row in entries()])


STEP = 4
"""One of so many mistakes is diagnosed by `make test`, all of them by `make test-long`."""


def calls(tried: Exercise, seed: int) -> Sequence[Call]:
    assert tried.grader is not None
    return tried.grader.cases(np.random.default_rng(seed))


def mistakes(tried: Exercise) -> dict[str, str]:
    """Every known wrong program by the id of its mistake; an id may have several."""
    assert tried.grader is not None
    return {
        f"{mistake.id} {place}": mistake.text(tried.solution) for place, mistake in enumerate(tried.grader.mistakes)
    }


# --- what stands in a folder ------------------------------------------------------------------------------


def test_there_are_all_exercises() -> None:
    assert len(entries()) >= 55
    homes = {folder(row).name for row in entries()}
    there = {path.name for path in folder(entries()[0]).parent.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert there == homes | {"template"}, "`template` is for exercises of one's own"


@every_exercise
def test_the_texts_are_equal_in_both_languages(name: str) -> None:
    tried = exercise(name)
    assert all(len(tried.hints[language]) == 3 and all(tried.hints[language]) for language in LANGUAGES)
    for words in (tried.title, tried.task, *tried.cases.values(), *tried.mistakes.values()):
        assert words.en.strip()
        assert words.zh.strip()
    assert re.search("[\u4e00-\u9fff]", tried.task.zh)
    assert codes(tried.task.en) == codes(tried.task.zh)


def codes(text: str) -> list[str]:
    """The lines of code in a task, without the prose."""
    return [line.strip() for line in text.splitlines() if line.startswith("    >>>")]


@every_exercise
def test_every_message_is_used_and_every_key_exists(name: str) -> None:
    tried = exercise(name)
    if tried.grader is not None:
        abouts = {call.about for seed in range(5) for call in calls(tried, seed)} - {""}
        named = {mistake.id for mistake in tried.grader.mistakes}
    else:
        assert tried.sheet is not None
        abouts = {field.step for seed in range(5) for field in tried.sheet.fields(seed)} - {""}
        named = {mistake.id for mistake in tried.sheet.mistakes}
    general = {key.removeprefix("case-") for key in catalogue() if key.startswith("case-")}
    assert abouts - (general - set(tried.cases)) == set(tried.cases)
    assert named - set(GENERAL) == set(tried.mistakes) - set(GENERAL)
    assert len(named) >= 6


@every_code
def test_the_data_are_small_and_fresh(name: str) -> None:
    tried = exercise(name)
    first, again, other = calls(tried, 1), calls(tried, 1), calls(tried, 2)
    assert len(first) >= 4
    assert repr(first) == repr(again)
    assert repr(first) != repr(other)


@every_code
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_the_task_are_correct(name: str, language: str) -> None:
    tried = exercise(name)
    text = getattr(tried.task, language)
    if ">>>" not in text:
        return
    space: dict[str, object] = {"np": np}
    exec(compile(tried.solution, name, "exec"), space)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(doctest.DocTestParser().get_doctest(text, space, name, None, None))
    assert runner.summarize(verbose=False).failed == 0


# --- what passes ------------------------------------------------------------------------------------------


@every_code
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 20), marks=pytest.mark.long)], ids=str)
def test_the_solution_passes_on_many_data_sets(name: str, seeds: range) -> None:
    tried = exercise(name)
    assert [seed for seed in seeds if not grade(tried, tried.solution, seed=seed, run=in_process).passed] == []


@every_code
def test_right_answers_pass_in_any_style(name: str) -> None:
    tried = exercise(name)
    files = sorted((RIGHT / name).glob("*.py"))
    assert len(files) >= 3
    for file in files:
        for seed in range(2 if tried.track == "numpy" else 1):
            verdict = grade(tried, file.read_text(encoding="utf-8"), seed=seed, run=in_process)
            assert verdict.passed, f"{file}, seed {seed}:\n{verdict}"


OURS = {
    "softmax": "from deep_learning.activations import softmax",
    "causal-mask": "from deep_learning.attention import create_causal_mask",
    "padding-mask": "from deep_learning.attention import create_padding_mask",
    "scaled-dot-product": "from regard.reference import scaled_dot_product_attention",
    "scaled-dot-product-module": "from deep_learning.nn import ScaledDotProductAttention",
    "self-attention-module": "from deep_learning.nn import SelfAttention",
    "single-head-manual": "from deep_learning.nn import SingleHeadSelfAttention_Manual",
    "masked-self-attention-module": "from deep_learning.nn import SingleHeadSelfAttentionWithMask",
    "multi-head-self-attention-module": "from deep_learning.nn import MultiHeadSelfAttention",
}


@pytest.mark.parametrize("name", OURS)
def test_our_own_functions_pass(name: str) -> None:
    verdict = grade(exercise(name), OURS[name], seed=1, run=in_process)
    assert verdict.passed, str(verdict)


# --- what does not ----------------------------------------------------------------------------------------


@every_code
def test_the_untouched_stub_fails(name: str) -> None:
    tried = exercise(name)
    verdict = grade(tried, tried.stub, seed=1, run=in_process)
    assert not verdict.passed
    assert verdict.mistake == ("untouched" if tried.kind == "bug" else "not-written")


@every_code
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(1, STEP))])
def test_every_mistake_fails_with_its_own_diagnosis(name: str, first: int) -> None:
    """Every fourth mistake, or the others: that all have answers of their own is the next test."""
    tried = exercise(name)
    for mistake, text in list(mistakes(tried).items())[first::STEP]:
        verdict = grade(tried, text, seed=1, run=in_process)
        assert (verdict.passed, verdict.mistake) == (False, mistake.split()[0]), f"{mistake}:\n{verdict}"
        assert verdict.diagnosis


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        *(pytest.param(row.id, (2,), marks=pytest.mark.long if row.track == "torch" else ()) for row in PROGRAMS),
        *(pytest.param(row.id, (3, 4, 5, 6), marks=pytest.mark.long) for row in PROGRAMS),
    ],
    ids=str,
)
def test_every_data_set_distinguishes_the_mistakes(name: str, seeds: tuple[int, ...]) -> None:
    """Mistakes with different answers get different diagnoses on every data set."""
    tried = exercise(name)
    assert tried.grader is not None
    programs = {mistake: text for mistake, text in mistakes(tried).items() if mistake.split()[0] not in GENERAL}
    for seed in seeds:
        answers = {
            mistake: in_process(text, calls(tried, seed), tried.track).answers for mistake, text in programs.items()
        }
        answers["the solution"] = in_process(tried.solution, calls(tried, seed), tried.track).answers
        alike = [
            f"seed {seed}: {one} = {other}"
            for one, other in combinations(answers, 2)
            if one.split()[0] != other.split()[0] and same(tried, answers[one], answers[other])
        ]
        assert alike == []


def same(tried: Exercise, left: Sequence[CallResult], right: Sequence[CallResult]) -> bool:
    """Whether two programs give the same answers for the diagnosis."""
    assert tried.grader is not None
    return all(
        a.raised == b.raised
        and (a.fault == b.fault)
        and (
            bool(a.raised or a.fault) or answer_difference(a, b, tried.tolerance, tried.grader.weights_optional) is None
        )
        for a, b in zip(left, right, strict=True)
    )


# --- through the sandbox ----------------------------------------------------------------------------------


BUGS = [row.id for row in entries() if row.kind == "bug"]
WRONG = {"softmax", "causal-mask", "decoder-block", "decoder-layer", *BUGS}
"""Exercises whose stub, solution and first mistake are run in the sandbox too; the others in `make test-long`."""


def unless(quick: set[str]) -> list[Any]:
    """Every exercise, `long` unless it is one of these."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.long) for name in CODE]


@pytest.mark.parametrize("name", unless(WRONG | {"scaled-dot-product-module"}))
def test_the_solution_passes_in_the_sandbox(name: str) -> None:
    assert grade(exercise(name), exercise(name).solution).passed


@pytest.mark.parametrize("name", unless(WRONG))
def test_the_sandbox_gives_the_same_verdict(name: str) -> None:
    tried = exercise(name)
    assert tried.grader is not None
    wrong = next(mistake for mistake in tried.grader.mistakes if mistake.id not in GENERAL)
    assert grade(tried, tried.stub).mistake == ("untouched" if tried.kind == "bug" else "not-written")
    verdict = grade(tried, wrong.text(tried.solution))
    assert (verdict.mistake, verdict.diagnosis) == (wrong.id, tried.mistakes[wrong.id].en)


# --- sheets -----------------------------------------------------------------------------------------------

SHEETS = [row.id for row in entries() if row.kind == "sheet"]
every_sheet = pytest.mark.parametrize("name", SHEETS)


def filled(answers: dict[str, object], seed: int) -> str:
    """A sheet with these answers, tables last, as TOML requires."""
    lines, table = [f"seed = {seed}"], ""
    for field, value in sorted(answers.items(), key=lambda item: "." in item[0]):
        home, _, key = field.rpartition(".")
        lines += [f"[{home}]"] * (home != table)
        lines, table = [*lines, f"{key} = {toml(value)}"], home
    return "\n".join(lines)


def toml(value: object) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    return f'"{value}"' if isinstance(value, str) else repr(np.asarray(value).item())


def full_width(text: str) -> str:
    """As typed with an input method: full-width characters in the answers, but not in the names."""
    twins = str.maketrans("0123456789.,[]-", "０１２３４５６７８９．，【】－")
    wide = []
    for line in text.splitlines():
        name, _, value = line.partition(" = ")
        typed = value if '"' in value else value.translate(twins)
        wide.append(f"{name} ＝ {typed}" if value else name)
    return "\n".join(wide)


def right_answers(tried: Exercise, seed: int) -> dict[str, object]:
    assert tried.sheet is not None
    return {field.name: field.expected for field in tried.sheet.fields(seed)}


@every_sheet
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_sheet_is_not_written(name: str, language: str) -> None:
    tried = exercise(name)
    assert tried.sheet is not None
    verdict = grade(tried, tried.sheet.make(5, "zh" if language == "zh" else "en"))
    assert (verdict.passed, verdict.mistake, verdict.seed) == (False, "not-written", 5)
    assert len(verdict.tests) == len(tried.sheet.fields(5))


@every_sheet
def test_right_sheets_pass_in_any_notation(name: str) -> None:
    tried = exercise(name)
    for seed in range(3):
        text = filled(right_answers(tried, seed), seed)
        quotes = text.replace('"', "'")
        windows = "\ufeff" + text.replace("\n", "\r\n")
        for way in (text, full_width(text), quotes, windows):
            verdict = grade(tried, way)
            assert verdict.passed, f"{way}\n{verdict}"


@every_sheet
def test_every_mistake_on_a_sheet_is_diagnosed(name: str) -> None:
    tried = exercise(name)
    assert tried.sheet is not None
    for seed in range(3):
        for mistake in tried.sheet.mistakes:
            answers = mistake.answers(seed)
            verdict = grade(tried, filled({**right_answers(tried, seed), **answers}, seed))
            assert verdict.mistake == mistake.id, f"seed {seed}:\n{verdict}"
            assert verdict.diagnosis == tried.mistakes[mistake.id].en
