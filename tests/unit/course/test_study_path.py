"""The path: order, times from counts of the texts, and what counts as done."""

import pytest

from regard.course.catalogue import entries, exercise
from regard.course.lessons import lessons
from regard.course.progress import Card, ExerciseProgress, Progress
from regard.course.questions import questions
from regard.course.study_path import (
    EXERCISE,
    LINE,
    SEARCHED_LINE,
    SHEET_STEP,
    WORDS,
    exercise_minutes,
    last_done,
    lesson_minutes,
    minutes_left,
    reading_minutes,
    steps,
)
from regard.messages import use_language


def test_code_blocks_and_pictures_are_not_read_as_words() -> None:
    text = "one two three\n\n```python\nmany words of code here\n```\n\n![a long description](picture.svg)\n"
    assert reading_minutes(text) == 3 / WORDS


def test_both_languages_take_about_as_long() -> None:
    for lesson in lessons():
        assert lesson_minutes(lesson.number, "zh") == pytest.approx(lesson_minutes(lesson.number, "en"), rel=0.15)


def test_the_times_of_exercises_follow_the_rule() -> None:
    read = reading_minutes(exercise("rms-norm").task.en)
    assert exercise_minutes("rms-norm", "en") == pytest.approx(EXERCISE + read + 2 * LINE)  # two lines to write
    sheet = exercise("by-hand")
    assert exercise_minutes("by-hand", "zh") == pytest.approx(
        EXERCISE + reading_minutes(sheet.task.zh) + SHEET_STEP * len(sheet.cases)
    )
    bug = exercise("bug-no-warm-up")
    lines = [line for line in bug.stub.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert exercise_minutes("bug-no-warm-up", "en") == pytest.approx(
        EXERCISE + reading_minutes(bug.task.en) + SEARCHED_LINE * len(lines)
    )


def test_a_lesson_is_its_text_then_exercises_then_questions() -> None:
    path = steps(Progress())
    assert [step.lesson for step in path] == sorted(step.lesson for step in path)
    order = {"lesson": 0, "exercise": 1, "question": 2}
    for lesson in lessons():
        kinds = [order[step.kind] for step in path if step.lesson == lesson.number]
        assert kinds == sorted(kinds)
        assert kinds[0] == 0
    assert len(path) == len(lessons()) + len(entries()) + len(questions())


def test_done_steps_take_no_more_time() -> None:
    assert minutes_left(steps(Progress())) > 0
    card = Card(box=1, due="2026-01-01", rated="good", at="2026-01-01T00:00:00+00:00")
    everything = Progress(
        exercises={row.id: ExerciseProgress(passed_at="2026-01-01T00:00:00+00:00") for row in entries()},
        questions={one.id: card for one in questions()},
        lessons={"why-attention": "2026-01-01T00:00:00+00:00"},
    )
    assert minutes_left(steps(everything)) == 0  # a lesson whose exercises are all passed counts as read


def test_titles_are_in_the_current_language() -> None:
    with use_language("zh"):
        assert steps(Progress())[0].title == lessons()[0].title.zh


def test_the_last_thing_is_the_latest_of_all_kinds() -> None:
    assert last_done(Progress()) is None
    work = ExerciseProgress(passed_at="2026-01-03T00:00:00+00:00")  # written before `worked_at` existed
    card = Card(box=1, due="2026-01-09", rated="good", at="2026-01-02T00:00:00+00:00")
    progress = Progress({"softmax": work}, {"why": card}, {"masks": "2026-01-01T00:00:00+00:00"})
    found = last_done(progress)
    assert found is not None
    assert (found.kind, found.id) == ("exercise", "softmax")
