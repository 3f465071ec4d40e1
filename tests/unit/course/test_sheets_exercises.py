"""The answer sheets: expected answers, mistakes of the tutorials, and hand-typed right sheets.

That every mistake gets its own diagnosis is tested for all sheets in test_exercises.py.
"""

from pathlib import Path

import numpy as np
import pytest

from regard.course.catalogue import exercise
from regard.course.exercises.by_hand import grader as calculating
from regard.course.exercises.find_the_head import grader as finding
from regard.course.exercises.induction_by_hand import grader as inducing
from regard.course.exercises.order_the_flow import grader as ordering
from regard.course.exercises.predict_the_row import grader as foretelling
from regard.course.grading.grader import grade
from regard.course.grading.verdict import Verdict
from regard.messages import LANGUAGES, use_language
from regard.reference import scaled_dot_product_attention

RIGHT = Path(__file__).parents[2] / "course" / "right"
SHEETS = ("by-hand", "predict-the-row", "order-the-flow", "find-the-head", "induction-by-hand")


def judged(name: str, text: str) -> Verdict:
    return grade(exercise(name), text)


@pytest.mark.parametrize("name", SHEETS)
def test_hand_typed_right_sheets_pass(name: str) -> None:
    files = sorted((RIGHT / name).glob("*.toml"))
    assert len(files) >= 3
    for file in files:
        verdict = judged(name, file.read_text(encoding="utf-8"))
        assert verdict.passed, f"{file}:\n{verdict}"


@pytest.mark.parametrize("name", SHEETS)
def test_the_empty_sheet_is_the_same_in_both_languages(name: str) -> None:
    sheet = exercise(name).sheet
    assert sheet is not None
    printed = [[line for line in sheet.make(7, lang).splitlines() if line[:1] != "#"] for lang in LANGUAGES]
    codes = [[line.split("#")[0] for line in lines] for lines in printed]
    assert codes[0] == codes[1]
    assert all(line.isascii() for line in codes[0])


@pytest.mark.parametrize("name", SHEETS)
def test_no_sheet_contains_its_answer(name: str) -> None:
    """Copied from the verdict, it would pass while `solution` is still locked."""
    tried = exercise(name)
    assert tried.sheet is not None
    for mistake in tried.sheet.mistakes:
        first = next(field for field in tried.sheet.fields(3) if field.name in mistake.answers(3))
        home, _, key = first.name.rpartition(".")
        value = mistake.answers(3)[first.name]
        typed = f'"{value}"' if isinstance(value, str) else str(value)
        verdict = judged(name, "\n".join(["seed = 3", f"[{home}]" * bool(home), f"{key} = {typed}"]))
        assert not any(test.expected for test in verdict.tests)
        assert "expected" not in str(verdict)


# --- by hand -----------------------------------------------------------------------------------------------

FIRST = "seed = 0\n[first]\nscores = [1, 0, 1]\nscaled = [0.707, 0, 0.707]\n"
TO_SECOND = FIRST + "weights = [0.401, 0.198, 0.401]\noutput = [16.04, 3.96]\n[second]\nscores = [1, 2, 0.5]\n"


def test_the_expected_answers_follow_the_definition() -> None:
    fields = {field.name: field.expected for field in exercise("by-hand").sheet.fields(0)}  # type: ignore[union-attr]
    given = {
        "first": ([[1.0, 0]], [[1.0, 0], [0, 1], [1, 0]], [[10.0, 0], [0, 20], [30, 0]]),
        "second": ([[1.0]], [[1.0], [2], [0.5]], [[10.0], [20], [5]]),
        "third": ([[1.0, 0]], [[1.0, 0], [0, 1]], [[5.0, 0], [0, 10]]),
    }
    for name, (q, k, v) in given.items():
        output, weights = scaled_dot_product_attention(np.array(q), np.array(k), np.array(v))
        np.testing.assert_allclose(fields[f"{name}.weights"], weights[0], atol=1e-6)
        np.testing.assert_allclose(fields[f"{name}.output"], output[0], atol=1e-6)


def test_the_second_and_third_tasks_differ_between_sheets() -> None:
    for name, count in (("first", 1), ("second", 30), ("third", 25)):
        assert len({str(calculating.inputs(seed)[name]) for seed in range(1, 31)}) >= count
    for seed in range(1, 31):
        fields = {field.name: field.expected for field in calculating.fields(seed)}
        for name, (q, K, V) in calculating.inputs(seed).items():
            output, weights = scaled_dot_product_attention(q[None], K, V)
            np.testing.assert_allclose(fields[f"{name}.weights"], weights[0], atol=1e-6)
            np.testing.assert_allclose(fields[f"{name}.output"], output[0], atol=1e-6)


def test_a_mistake_in_the_second_function_alone_is_diagnosed() -> None:
    """The first task is in a tutorial; the mistake must also be recognised with new numbers."""
    tried = exercise("by-hand")
    assert tried.sheet is not None
    for seed in range(1, 6):
        for mistake in tried.sheet.mistakes:
            wrong = {name: value for name, value in mistake.answers(seed).items() if name.startswith("second")}
            typed = {field.name: field.expected for field in tried.sheet.fields(seed)} | wrong
            lines = [f"{name} = {value}" for name, value in typed.items()]
            assert judged("by-hand", "\n".join([f"seed = {seed}", *lines])).mistake == (mistake.id if wrong else None)


@pytest.mark.parametrize(
    ("text", "mistake", "wrong"),
    [
        (FIRST + "weights = [.5, 0, .5]\noutput = [20, 0]", "zero-score-zero-weight", "first.weights"),
        (
            TO_SECOND + "scaled = [1, 2, .5]\nweights = [.231, .628, .14]\noutput = 15.57",
            "rounded-early",
            "second.output",
        ),
        (TO_SECOND + "scaled = [1, 2, .5]\nweights = [.23, .63, .14]\noutput = 15.6", "rounded-early", "second.output"),
        ("seed = 0\n[first]\nscores = [1, 0, 1]\nscaled = [1, 0, 1]", "no-scale", "first.scaled"),
        ("seed = 0\n[first]\nscores = [1, 0, 1]\nscaled = [.5, 0, .5]", "divided-by-d-k", "first.scaled"),
        (FIRST + "weights = [2.03, 1, 2.03]", "not-normalised", "first.weights"),
    ],
)
def test_a_partly_filled_sheet_reports_its_first_wrong_step(text: str, mistake: str, wrong: str) -> None:
    verdict = judged("by-hand", text)
    assert verdict.mistake == mistake, str(verdict)
    assert next(test.call for test in verdict.tests if not test.passed) == wrong


# --- predict the row ---------------------------------------------------------------------------------------


def test_the_row_is_revealed_only_after_a_right_prediction() -> None:
    right = foretelling.fields(2)[1].expected
    with use_language("zh"):
        half = judged("predict-the-row", "seed = 2\nwinner = A")
        missed = judged("predict-the-row", "seed = 2\nwinner = A\nweights = [0 1 0 0]")
        whole = judged("predict-the-row", f"seed = 2\nwinner = A\nweights = {right}")
    for verdict in (half, missed):
        assert not verdict.passed
        assert "█" not in str(verdict), "copied, it would pass"
    assert "A    7   3.5  0.64  ██████████████████████████" in str(whole)
    assert "真正的这一行" in str(whole)


def test_rows_are_random_and_simple_enough() -> None:
    for seed in range(30):
        q, K = foretelling.drawn(seed)
        assert np.abs(q).max() <= 2
        assert np.abs(K).max() <= 2
        _, weights = scaled_dot_product_attention(q[None].astype(float), K.astype(float), np.eye(4))
        np.testing.assert_allclose(foretelling.fields(seed)[1].expected, weights[0], atol=5e-5)
    assert len({foretelling.make(seed, "en") for seed in range(30)}) == 30


# --- order the flow ----------------------------------------------------------------------------------------


def test_exactly_two_orders_are_right() -> None:
    letter = ordering.letters(11)
    for first, second in zip(ordering.RIGHT, ordering.RIGHT[1:], strict=False):
        order = list(ordering.RIGHT)
        place = order.index(first)
        order[place : place + 2] = second, first
        typed = " ".join(letter[step] for step in order)
        passed = judged("order-the-flow", f'seed = 11\norder = "{typed}"').passed
        assert passed == ({first, second} == {"scale", "mask"}), typed


def test_letters_are_counted() -> None:
    assert (
        judged("order-the-flow", 'seed = 11\norder = "ADI"').diagnosis
        == "the number of letters in order should be 9, not 3"
    )
    with use_language("zh"):
        assert judged("order-the-flow", "seed = 11\norder = ADI").diagnosis == "order 需要 9 个字母；实际有 3 个"


def test_a_step_that_comes_too_early_is_named() -> None:
    letter = ordering.letters(11)
    early = [*ordering.RIGHT]
    early.remove("merge")
    early.insert(2, "merge")  # before the scores: no known mistake
    typed = ", ".join(letter[step].lower() for step in early)
    merge, gather = letter["merge"], letter["gather"]
    with use_language("en"):
        verdict = judged("order-the-flow", f'seed = 11\norder = "{typed}"')
    assert verdict.mistake == "unknown"
    assert verdict.diagnosis == f"{merge} uses the result of {gather}, so it cannot come before {gather}"
    with use_language("zh"):
        verdict = judged("order-the-flow", f'seed = 11\norder = "{typed}"')
    assert verdict.diagnosis == f"{merge} 要用到 {gather} 的结果，不能排在 {gather} 前面"


def test_invalid_letters_get_no_remark() -> None:
    verdict = judged("order-the-flow", 'seed = 11\norder = "AABCDEFGH"')
    assert "no known mistake" in str(verdict.diagnosis)


# --- find the head -----------------------------------------------------------------------------------------


def test_the_right_heads_are_those_of_regard_heads() -> None:
    asked = finding.question_scores(0)
    assert all(scores.found.max() > 0.5 for scores in asked.values())
    assert all(len(scores.right) <= 6 for scores in asked.values())
    best = finding.poet(finding.prompt(0)).heads().ranked("previous")[0]
    assert (int(best.name.split(".")[2]), best.head) in asked["previous"].right


def test_find_the_head_takes_less_than_three_seconds() -> None:
    finding.translator.cache_clear()
    finding.poet.cache_clear()
    finding.question_scores.cache_clear()
    text = (RIGHT / "find-the-head" / "best.toml").read_text(encoding="utf-8")
    assert min(judged("find-the-head", text).seconds for _ in range(2)) < 3


def test_a_weaker_head_is_compared_with_the_best() -> None:
    scores = finding.question_scores(0)["ahead"]
    layer, head = next(place for place in scores.ranked[len(scores.right) :] if _is_no_known_mistake(place))
    weight, best = scores.found[layer, head], scores.found.max()
    typed = f"seed = 0\nahead = [{layer}, {head}]"
    with use_language("zh"):
        printed = judged("find-the-head", typed).diagnosis
    assert printed == f"头 [{layer}, {head}] 在题目所指位置上的平均权重是 {weight:.2f}，最好的头是 {best:.2f}"
    with use_language("en"):
        assert f"mean weight of {weight:.2f}" in str(judged("find-the-head", typed).diagnosis)
        assert "no known mistake" in str(judged("find-the-head", "seed = 0\nahead = [77, 7]").diagnosis)


def _is_no_known_mistake(place: finding.Place) -> bool:
    return all(mistake.answers(0).get("ahead") != list(place) for mistake in finding.MISTAKES)


@pytest.mark.parametrize("typed", [[0.5, 0.5, 0.5, 0.5], [0.9, 0.9, 0.9, 0.1], [0.0, 0.0, 0.0, 0.1]])
def test_a_row_with_a_wrong_sum_is_reported(typed: list[float]) -> None:
    tried = exercise("predict-the-row")
    assert tried.sheet is not None
    winner = tried.sheet.fields(3)[0].expected
    sheet = f'seed = 3\nwinner = "{winner}"\nweights = {typed}\n'
    total = f"{sum(typed):.4g}"
    assert grade(tried, sheet).mistake == "wrong-total"
    assert grade(tried, sheet).diagnosis == f"the numbers of weights sum to {total}; they should sum to 1"
    with use_language("zh"):
        assert grade(tried, sheet).diagnosis == f"weights 的各个数之和是 {total}；应当等于 1"


def test_a_rounded_row_is_not_reported_as_a_wrong_sum() -> None:
    tried = exercise("by-hand")
    sheet = "seed = 0\n[first]\nscores = [1, 0, 1]\nscaled = [0.707, 0, 0.707]\nweights = [0.5, 0.25, 0.26]\n"
    assert grade(tried, sheet).mistake == "unknown"
    assert grade(tried, sheet.replace("0.26", "0.4")).mistake == "wrong-total"


# --- induction by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_both_heads_follow_from_attention_on_one_hot_tokens(seed: int) -> None:
    """Layer 1 attends by position and writes its mixture; layer 2 compares the last token with it."""
    text, strength, factor = inducing.drawn(seed)
    fields = {field.name: field.expected for field in inducing.fields(seed)}
    x, places = np.array([[float(a == b) for b in "ABCDEFGH"] for a in text]), np.eye(5)
    asked = np.eye(5, k=-1) * np.log(strength)
    written, previous = scaled_dot_product_attention(asked, places, x, mask=np.tri(5, dtype=bool), scale=1.0)
    np.testing.assert_allclose([fields[f"previous.row_{n}"] for n in range(1, 6)], previous, atol=1e-6)
    _, weights = scaled_dot_product_attention(x[-1:], written, x, scale=factor)
    np.testing.assert_allclose(fields["induction.scores"], factor * (written @ x[-1]), atol=1e-5)
    np.testing.assert_allclose(fields["induction.weights"], weights[0], atol=1e-6)
    assert fields["induction.prediction"] == text[text.index(text[-1]) + 1]


def test_every_mistake_is_diagnosed_for_every_pattern_and_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = exercise("induction-by-hand")
    for pattern in inducing.PATTERNS:
        for strength in (4, 6, 9):
            for factor in (3, 4):
                given = inducing.Drawn(pattern, strength, factor)
                monkeypatch.setattr(inducing, "drawn", lambda seed, given=given: given)
                for id, ways in inducing.MISTAKES.items():
                    answers = inducing.calculated(given) | inducing.changed(given, ways)
                    lines = [f"{name} = {value!r}" for name, value in answers.items()]
                    verdict = grade(tried, "\n".join(["seed = 1", *lines]))
                    assert verdict.mistake == id, f"{given}:\n{verdict}"


def test_induction_sheets_differ() -> None:
    assert len({inducing.drawn(seed) for seed in range(1, 31)}) >= 25
    assert inducing.drawn(0).text == "ABCAB"
