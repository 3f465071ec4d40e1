"""regard learn interview: a timed interview at a terminal, and by options without one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Run

from regard.course.progress import ProgressFile
from regard.course.questions import interview_questions

SEED = ("--seed", "7", "--questions", "3")
CHOSEN = interview_questions(3, 7)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))
    return tmp_path


def rated() -> dict[str, str]:
    return {one: card.rated for one, card in ProgressFile().read().questions.items()}


# --- without a terminal ------------------------------------------------------------------------------------


def test_without_a_terminal_questions_and_the_next_commands_are_shown(run: Run) -> None:
    code, out, err = run("learn", "interview", *SEED)
    assert code == 0
    assert [out.count(f"[{one.id}]") for one in CHOSEN] == [1, 1, 1]
    assert CHOSEN[0].en.short not in out
    assert "limit 2:00" in out
    assert "regard learn interview --questions 3 --seed 7 --reveal" in err
    assert "regard learn interview --questions 3 --seed 7 --rate" in err
    assert not rated()


def test_ten_questions_with_a_seed_that_repeats_them(run: Run) -> None:
    first = json.loads(run("learn", "interview", "--json").out)
    assert len(first["questions"]) == 10
    again = json.loads(run("learn", "interview", "--json", "--seed", str(first["seed"])).out)
    assert again == first


def test_reveal_shows_the_answers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for lang in ("en", "zh"):
        shown = "".join(run("learn", "interview", *SEED, "--reveal", "--lang", lang).out.split())
        for one in CHOSEN:
            for part in (one.text(lang).ask, one.text(lang).short, one.text(lang).deep):
                assert "".join(part.split()) in shown


def test_ratings_are_saved_and_summarised(run: Run) -> None:
    code, out, err = run("learn", "interview", *SEED, "--rate", "3, again，2")
    assert (code, err) == (0, "")
    assert rated() == dict(zip((one.id for one in CHOSEN), ("good", "again", "unsure"), strict=True))
    assert "Score: 50 % of 3 questions (1 good, 1 unsure, 1 again)" in out
    assert f"regard learn start {CHOSEN[1].exercise}" in out
    assert "Time" not in out, "nothing was measured"
    assert "得分：3 题，50%" in run("learn", "interview", *SEED, "--rate", "3,1,2", "--lang", "zh").out


def test_json(run: Run) -> None:
    result = json.loads(run("learn", "interview", *SEED, "--json", "--lang", "zh").out)
    assert [row["ask"] for row in result["questions"]] == [one.zh.ask for one in CHOSEN]
    assert result["limit_s"] == sum(row["limit_s"] for row in result["questions"])
    assert "summary" not in result
    assert "short" not in result["questions"][0]
    result = json.loads(run("learn", "interview", *SEED, "--json", "--reveal", "--rate", "3,1").out)
    assert result["questions"][0]["short"] == CHOSEN[0].en.short
    assert [row["card"] and row["card"]["rated"] for row in result["questions"]] == ["good", "again", None]
    assert result["summary"]["score"] == 50
    assert result["summary"]["weakest"] == [CHOSEN[1].topic]


def test_topic_level_and_list(run: Run) -> None:
    result = json.loads(run("learn", "interview", "--topic", "掩码", "--level", "2", "--json").out)
    assert {(row["topic"], row["level"]) for row in result["questions"]} == {("masks", 2)}
    assert "Only 4 questions match." in run("learn", "interview", "--topic", "masks", "--level", "2").err
    topics = json.loads(run("learn", "interview", "--list", "--json").out)["topics"]
    assert {"topic": "masks", "title": "Masks", "questions": [2, 4, 0]} in topics
    assert "masks          2  4  0  掩码" in run("learn", "interview", "--list", "--lang", "zh").out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rate", "3"], "--seed"),
        ([*SEED, "--rate", "3,3,3,3"], "found 4 ratings for 3 questions"),
        ([*SEED, "--rate", "3,x"], "found 'x'"),
        (["--level", "4"], "found '4'"),
        (["--questions", "0"], "--questions"),
        (["--topic", "mask"], "did you mean masks"),
        (["--topic", "shapes", "--level", "3"], "its levels: 1, 2"),
    ],
)
def test_invalid_options(run: Run, arguments: list[str], text: str) -> None:
    code, out, err = run("learn", "interview", *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert not rated()


# --- at a terminal -----------------------------------------------------------------------------------------


@contextmanager
def at_a_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process and our side of its terminal."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "regard", "learn", "interview", *SEED, *arguments]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        yield process, ours
    os.close(ours)


def read_to_end(ours: int) -> str:
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # the other side is closed: end of output on Linux
        pass
    return seen.decode()


def test_an_interview_to_the_end() -> None:
    with at_a_terminal() as (process, ours):
        os.write(ours, b"\n3\n\nhm\n1\n\n2\n")
        seen = read_to_end(ours)
    assert process.returncode == 0
    assert list(rated().values()) == ["good", "again", "unsure"]
    places = [seen.index(one.en.ask[:12]) for one in CHOSEN]
    assert places == sorted(places)
    assert "3 questions, time limit" in seen
    assert "Time: 0:0" in seen
    assert "found 'hm'" in seen, "an invalid rating is requested again"
    assert "Score: 50 % of 3 questions" in seen
    assert "questions over their limit: 0" in seen


@pytest.mark.parametrize(("keys", "kept"), [(b"\x04", 0), (b"\n\x04", 0), (b"\n3\n\x04", 1), (b"\n3\n\n\x04", 1)])
def test_end_of_input_ends_with_a_summary_of_what_was_rated(keys: bytes, kept: int) -> None:
    with at_a_terminal("--lang", "zh") as (process, ours):
        os.write(ours, keys)
        seen = read_to_end(ours)
    assert process.returncode == 0
    assert len(rated()) == kept
    assert ("得分：1 题，100%" if kept else "没有打分的题目。") in seen


@pytest.mark.usefixtures("signals_at_default")
def test_ctrl_c_keeps_what_was_rated() -> None:
    with at_a_terminal() as (process, ours):
        os.write(ours, b"\n3\n")
        seen = b""
        while seen.count(b"Question 2 of 3") < 1 or not seen.endswith(b"answer: "):
            seen += os.read(ours, 4096)
        while process.poll() is None:  # a signal just before Python reads would wait for the next key
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        seen += read_to_end(ours).encode()
    assert process.returncode == 130
    assert rated() == {CHOSEN[0].id: "good"}
    assert b"Score: 100 % of 1 questions" in seen
