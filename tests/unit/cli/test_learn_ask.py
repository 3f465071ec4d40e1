"""regard learn ask: question, answers and rating; interactive on a terminal, by options without one."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import pytest
from command_line import Run

from regard.course.progress import ProgressFile
from regard.course.questions import question, questions, rate

FIRST = questions()[0]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    return tmp_path


def test_a_newcomer_gets_the_formula_question_first(run: Run) -> None:
    assert json.loads(run("learn", "ask", "--json").out)["id"] == "attention-formula"


def test_without_a_terminal_the_next_commands_are_shown(run: Run) -> None:
    code, out, err = run("learn", "ask")
    assert code == 0
    assert FIRST.id in out
    assert FIRST.en.short not in out
    assert f"regard learn ask {FIRST.id} --reveal" in err
    assert f"regard learn ask {FIRST.id} --rate" in err


def test_reveal_shows_both_answers_and_the_experiment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for lang in ("en", "zh"):
        out = run("learn", "ask", FIRST.id, "--reveal", "--lang", lang).out
        shown = out.replace("\n", "").replace(" ", "")
        for part in (FIRST.text(lang).ask, FIRST.text(lang).short, FIRST.text(lang).deep):
            assert part.replace("\n", "").replace(" ", "") in shown
        for line in FIRST.experiment.strip().splitlines():
            assert f"    {line}\n" in out, "can be pasted"
        assert f"regard learn start {FIRST.exercise}" in out


def test_json(run: Run) -> None:
    result = json.loads(run("learn", "ask", "--json", "--lang", "zh").out)
    assert result["id"] == FIRST.id
    assert result["ask"] == FIRST.zh.ask
    assert result["card"] is None
    assert "short" not in result
    result = json.loads(run("learn", "ask", FIRST.id, "--reveal", "--json").out)
    assert (result["short"], result["deep"], result["experiment"]) == (FIRST.en.short, FIRST.en.deep, FIRST.experiment)
    result = json.loads(run("learn", "ask", FIRST.id, "--rate", "good", "--json").out)
    assert result["card"]["box"] == 1
    listed = json.loads(run("learn", "ask", "--list", "--json").out)["questions"]
    assert [row["id"] for row in listed] == [one.id for one in questions()]
    assert listed[0]["card"]["rated"] == "good"


@pytest.mark.parametrize(("typed", "rated"), [("good", "good"), ("1", "again"), ("２", "unsure"), (" Good ", "good")])
def test_a_rating_is_saved_and_schedules_the_question(run: Run, typed: str, rated: str) -> None:
    code, out, err = run("learn", "ask", FIRST.id, "--rate", typed)
    assert (code, out) == (0, "")
    card = ProgressFile().read().questions[FIRST.id]
    assert card.rated == rated
    assert ("today" in err) is (rated == "again")
    assert ("on 20" in err) is (rated != "again")
    assert json.loads(run("learn", "ask", "--json").out)["id"] != FIRST.id


@pytest.mark.parametrize(
    "arguments", [["--rate", "good"], [FIRST.id, "--rate", "great"], [FIRST.id, "--rate", ""], ["no-such-question"]]
)
def test_invalid_progress_files(run: Run, arguments: list[str]) -> None:
    code, out, err = run("learn", "ask", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("regard: ")
    assert not ProgressFile().read().questions


def test_when_nothing_is_due(run: Run) -> None:
    today = date.today()
    for one in questions():
        ProgressFile().change(lambda now, one=one: now.with_card(one.id, rate(None, "good", today)))  # type: ignore[misc]
    code, out, err = run("learn", "ask")
    assert (code, out) == (0, "")
    tomorrow = (today + timedelta(1)).isoformat()
    assert tomorrow in err
    assert json.loads(run("learn", "ask", "--json").out) == {"id": None, "next_day": tomorrow}
    assert tomorrow in run("learn", "ask", "--list").out
    assert run("learn", "ask", FIRST.id).code == 0, "a named question is always available"


def test_due_questions_come_first_and_are_counted(run: Run) -> None:
    last = questions()[-1].id
    ProgressFile().change(lambda now: now.with_card(last, rate(None, "good", date.today() - timedelta(5))))
    assert json.loads(run("learn", "ask", "--json").out)["id"] == last
    assert "due today: 1" in run("learn", "list").err
    assert json.loads(run("learn", "--json").out)["questions_due"] == 1


def test_asking_without_saved_progress(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("REGARD_HOME", str(home / "file"))
    code, _, err = run("learn", "ask", FIRST.id, "--rate", "good")
    assert code == 0
    assert err.count("progress is not saved") == 1
    assert "comes again" not in err, "no rating was saved"


# --- at a terminal -----------------------------------------------------------------------------------------


def at_a_terminal(typed: bytes, *arguments: str) -> tuple[int, str]:
    """The screen output and the exit code, with keyboard input prepared beforehand."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "regard", "learn", "ask", *arguments]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        os.write(ours, typed)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other side is closed: end of output on Linux
                break
            if not chunk:
                break
            seen += chunk
    os.close(ours)
    return process.returncode, seen.decode()


def test_an_interactive_session() -> None:
    code, seen = at_a_terminal(b"\n\nhm\n3\n", "why-sqrt-d-k", "--lang", "zh")
    one = question("why-sqrt-d-k")
    assert code == 0
    places = [seen.index(text[:12]) for text in (one.zh.ask, one.zh.short, one.zh.deep)]
    assert places == sorted(places)
    assert "实际为 'hm'" in seen, "an invalid rating is requested again"
    assert ProgressFile().read().questions[one.id].rated == "good"


@pytest.mark.parametrize("typed", [b"\x04", b"\n\x04", b"\n\n\x04"])
def test_end_of_input_ends_without_a_rating(typed: bytes) -> None:
    code, _ = at_a_terminal(typed, FIRST.id)
    assert code == 0
    assert not ProgressFile().read().questions


@pytest.mark.usefixtures("signals_at_default")
def test_an_interruption_is_130() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "regard", "learn", "ask", FIRST.id]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        seen = b""
        while b"Enter" not in seen:
            seen += os.read(ours, 4096)
        while process.poll() is None:  # a signal just before Python reads would wait for the next key
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.returncode == 130
    os.close(ours)
    os.close(theirs)
    assert not ProgressFile().read().questions
