"""`regard learn certificate`: the page is written, and verified item by item."""

import json
from pathlib import Path

import pytest
from command_line import Run

import regard
from regard.course.catalogue import exercise
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import ProgressFile


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pass_(*ids: str) -> None:
    for one in ids:
        ProgressFile().checked(one, passed=True)
        PassedAnswers().keep(one, exercise(one).solution)


def test_a_page_is_written_and_verified(run: Run, desk: Path) -> None:
    pass_("softmax", "causal-mask")
    code, out, err = run("learn", "certificate", "mine.html", "--name", "王小明", "--lang", "zh")
    assert (code, out) == (0, "")
    assert "regard learn certificate --verify mine.html" in err
    assert "王小明" in (desk / "mine.html").read_text(encoding="utf-8")
    code, out, err = run("learn", "certificate", "--verify", "mine.html")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["✓", "softmax"], ["✓", "causal-mask"]]
    assert "2 of 2" in err


def test_an_answer_that_does_not_pass(run: Run) -> None:
    pass_("softmax")
    PassedAnswers().keep("softmax", exercise("softmax").stub)
    run("learn", "certificate", "mine.html")
    code, out, err = run("learn", "certificate", "--verify", "mine.html")
    assert (code, out[0], "0 of 1" in err) == (1, "✗", True)
    printed = json.loads(run("learn", "certificate", "mine.html", "--verify", "--json").out)
    assert (printed["passes"], printed["count"], printed["edited"]) == (0, 1, False)
    assert printed["items"][0]["outcome"] == "fails"


def test_an_edited_page_is_reported(run: Run, desk: Path) -> None:
    pass_("softmax")
    run("learn", "certificate", "mine.html", "--name", "Ada")
    text = (desk / "mine.html").read_text(encoding="utf-8")
    (desk / "mine.html").write_text(text.replace("1<small> / ", "54<small> / "), encoding="utf-8")
    code, _, err = run("learn", "certificate", "--verify", "mine.html")
    assert (code, "was edited" in err) == (1, True)
    (desk / "mine.html").write_bytes(text.replace("\n", "\r\n").encode())
    assert run("learn", "certificate", "--verify", "mine.html").code == 0, "line ends of another system"


def test_a_page_of_another_version_is_verified_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_("softmax")
    run("learn", "certificate", "mine.html")
    monkeypatch.setattr(regard, "__version__", "99.0")
    code, _, err = run("learn", "certificate", "--verify", "mine.html")
    assert (code, "99.0" in err) == (0, True)


def test_missing_answers_are_named(run: Run) -> None:
    ProgressFile().checked("softmax", passed=True)
    code, _, err = run("learn", "certificate", "mine.html")
    assert (code, "softmax were passed before" in err) == (0, True)
    printed = json.loads(run("learn", "certificate", "mine.html", "--json").out)
    assert printed == {"file": "mine.html", "passed": 1, "without_answers": ["softmax"]}
    code, out, _ = run("learn", "certificate", "--verify", "mine.html")
    assert (code, out[0]) == (1, "–")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "which file"),
        (["mine.html"], 2, "no exercise is passed"),
        (["mine.txt"], 2, "mine.html"),
        (["--verify", "mine.html", "--name", "Ada"], 2, "--name"),
        (["--verify", "none.html"], 3, "none.html"),
    ],
)
def test_plain_mistakes(run: Run, words: list[str], code: int, message: str) -> None:
    found, _, err = run("learn", "certificate", *words)
    assert (found, message in err) == (code, True), err


def test_hostile_text_in_a_page_is_not_printed_raw(run: Run, desk: Path) -> None:
    pass_("softmax")
    run("learn", "certificate", "mine.html")
    text = (desk / "mine.html").read_text(encoding="utf-8")
    (desk / "mine.html").write_text(text.replace('"id": "softmax"', '"id": "\\u001b[2Jevil"'), encoding="utf-8")
    _, out, err = run("learn", "certificate", "--verify", "mine.html")
    assert "\x1b" not in out + err
