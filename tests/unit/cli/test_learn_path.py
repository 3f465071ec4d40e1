"""`regard learn` alone and `regard learn path`: where the learner was, what is next and due, and how long it takes."""

import json
import re
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from command_line import CommandResult, Run
from rich.cells import cell_len

from regard.course.catalogue import entries
from regard.course.lessons import lessons
from regard.course.progress import Card, ExerciseProgress, Progress, ProgressFile, timestamp
from regard.course.questions import questions
from regard.messages import LANGUAGES, Language, say


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def store(progress: Progress) -> None:
    ProgressFile().change(lambda now: progress)


def top(run: Run, *options: str) -> list[str]:
    """The lines above the first blank one."""
    out = run("learn", *options).out
    return out[: out.index("\n\n")].splitlines()


def read(run: Run, *arguments: str) -> CommandResult:
    """`regard learn read` on a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        patch.setattr("click.echo_via_pager", lambda text, color: print(text))
        return run("learn", "read", *arguments)


# --- overview ----------------------------------------------------------------------------------------------


def test_a_newcomer_begins_with_lesson_one(run: Run) -> None:
    was, following, *_ = top(run)
    assert "beginning" in was
    assert "regard learn read 1" in following


def test_the_last_thing_done_is_shown(run: Run) -> None:
    store(Progress(exercises={"softmax": ExerciseProgress(attempts=1, worked_at="2026-01-02T10:00:00+00:00")}))
    assert "softmax, not passed yet · on 2026-01-02" in top(run)[0]
    assert "softmax，尚未通过" in top(run, "--lang", "zh")[0]
    card = Card(box=0, due="2026-01-04", rated="unsure", at="2026-01-03T10:00:00+00:00")
    ProgressFile().change(lambda now: now.with_card("why-sqrt-d-k", card))
    assert "why-sqrt-d-k, rated unsure" in top(run)[0]
    read(run, "4")
    assert re.search("lesson 4 .* · today", top(run)[0])
    assert json.loads(run("learn", "--json").out)["last"]["id"] == "masks"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_first_reading_says_that_the_lesson_counts_as_read(run: Run, lang: Language) -> None:
    command = "regard learn start scaled-dot-product"
    assert say("read-marked", lang, number=4, next=command) in read(run, "masks", "--lang", lang).err
    assert read(run, "masks", "--lang", lang).err == ""
    passed = {row.id: ExerciseProgress(passed_at="2026-01-01T00:00:00+00:00") for row in entries() if row.lesson == 9}
    store(Progress(exercises=passed))
    question = next(one.id for one in questions() if one.lesson == 9)
    assert f"regard learn ask {question}" in read(run, "9").err


def test_a_lesson_in_a_file_or_a_pipe_does_not_count_as_read(run: Run) -> None:
    for options in ((), ("--json",)):
        assert run("learn", "read", "8", *options).err == ""
    assert not ProgressFile().read().lessons


def test_a_day_ago_is_yesterday(run: Run) -> None:
    before = timestamp().replace(date.today().isoformat(), (date.today() - timedelta(days=1)).isoformat())
    store(Progress(lessons={"masks": before}))
    assert "yesterday" in top(run)[0] or "on 20" in top(run)[0]  # the local day may differ from that of UTC


def test_what_is_due_is_counted(run: Run) -> None:
    card = Card(box=1, due="2026-01-01", rated="good", at="2025-12-31T08:00:00+00:00")
    later = Card(box=1, due="2999-01-01", rated="good", at="2025-12-31T08:00:00+00:00")
    assert "nothing to repeat" in top(run)[3]
    store(Progress(questions={"why-sqrt-d-k": card, "what-is-d-k": card, "axes-of-q-k-v": later}))
    assert any("questions to repeat: 2" in line for line in top(run))


def test_counts_and_time_left_follow_progress(run: Run) -> None:
    before = json.loads(run("learn", "--json").out)
    assert before["counts"]["exercises"] == {"done": 0, "count": len(entries())}
    ProgressFile().checked("softmax", passed=True)
    read(run, "1")
    after = json.loads(run("learn", "--json").out)
    assert after["counts"]["exercises"]["done"] == after["counts"]["lessons"]["done"] == 1
    assert after["minutes_left"] < before["minutes_left"]
    assert f"1 of {len(lessons())} lessons, 1 of {len(entries())} exercises" in " ".join(top(run))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_overview_fits_one_screen_of_eighty_columns(run: Run, lang: str) -> None:
    lines = run("learn", "--lang", lang).out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) <= 30
    marks = [line for line in lines if re.match(r"  [✓·] [ \d]\d ", line)]
    assert len(marks) == len(lessons())
    assert sum(line.count("·") for line in marks) == len(lessons()) + len(entries())  # none is read or started


# --- path --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_path_has_every_lesson_and_exercise_in_order(run: Run, lang: str) -> None:
    out = run("learn", "path", "--lang", lang).out
    places = [out.index(f"  {row.id}  ") for row in sorted(entries(), key=lambda row: row.lesson)]
    assert places == sorted(places)
    assert re.findall(r"regard learn read (\d+)", out) == [str(lesson.number) for lesson in lessons()]
    assert max(map(cell_len, out.splitlines())) <= 80


def test_one_lesson_lists_its_questions(run: Run) -> None:
    out = run("learn", "path", "masks").out
    own = [one.id for one in questions() if one.lesson == 4]
    assert own
    assert all(f"  {one}  " in out for one in own)
    assert "softmax  " not in out


def test_the_sums_of_the_json_agree(run: Run) -> None:
    printed = json.loads(run("learn", "path", "--json").out)
    steps = [step for lesson in printed["lessons"] for step in lesson["steps"]]
    assert len(steps) == len(lessons()) + len(entries()) + len(questions())
    assert (
        printed["minutes"] == printed["minutes_left"] == pytest.approx(sum(step["minutes"] for step in steps), abs=10)
    )
    ProgressFile().checked("softmax", passed=True)
    after = json.loads(run("learn", "path", "--json").out)
    done = [step for lesson in after["lessons"] for step in lesson["steps"] if step["done"]]
    assert [step["id"] for step in done] == ["softmax"]
    assert after["minutes"] - after["minutes_left"] == pytest.approx(done[0]["minutes"], abs=1)


def test_the_rule_is_stated(run: Run) -> None:
    assert "120 words" in run("learn", "path").err
    assert run("learn", "path", "no such lesson").code == 2
