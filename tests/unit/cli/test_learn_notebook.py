"""regard learn notebook: which files it writes, and which it leaves as they are."""

import json
from pathlib import Path

import pytest
from command_line import Run

from regard.course.lessons import lesson, lessons
from regard.course.lessons.markdown import notebook_text


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_lesson(run: Run, desk: Path) -> None:
    code, out, err = run("learn", "notebook", "4")
    assert (code, out) == (0, "")
    assert "Wrote 04-masks.en.ipynb." in err
    assert (desk / "04-masks.en.ipynb").read_text(encoding="utf-8") == notebook_text(lesson("4"), "en")
    assert run("learn", "notebook", "masks", "--lang", "zh").code == 0
    assert (desk / "04-masks.zh-CN.ipynb").read_text(encoding="utf-8") == notebook_text(lesson("4"), "zh")


def test_a_file_or_a_folder(run: Run, desk: Path) -> None:
    (desk / "v1.0").mkdir()
    for target, expected in (
        ("mine.ipynb", "mine.ipynb"),
        ("new/folder", "new/folder/02-by-hand.en.ipynb"),
        ("new/v2.0/", "new/v2.0/02-by-hand.en.ipynb"),
        ("v1.0", "v1.0/02-by-hand.en.ipynb"),
        ("other/mine.IPYNB", "other/mine.IPYNB"),
    ):
        printed = json.loads(run("learn", "notebook", "2", target, "--json").out)
        assert printed == {"notebooks": [{"number": 2, "name": "by-hand", "file": expected, "written": True}]}
        assert (desk / expected).is_file()


def test_all_lessons(run: Run, desk: Path) -> None:
    assert run("learn", "notebook", "--all", "course").code == 0
    assert len(list((desk / "course").iterdir())) == len(lessons())
    assert run("learn", "notebook", "--all").code == 0
    assert len(list(desk.glob("*.ipynb"))) == len(lessons())


def test_a_file_is_never_overwritten(run: Run, desk: Path) -> None:
    path = desk / "04-masks.en.ipynb"
    run("learn", "notebook", "4")
    code, _, err = run("learn", "notebook", "4")
    assert code == 0
    assert "already exists and is unchanged" in err
    for content in (b"mine", b"", path.read_bytes() + b" "):
        path.write_bytes(content)
        code, _, err = run("learn", "notebook", "4")
        assert code == 0
        assert "was not overwritten" in err
        assert "没有覆盖" in run("learn", "notebook", "4", path.name, "--lang", "zh").err
        assert json.loads(run("learn", "notebook", "4", "--json").out)["notebooks"][0]["written"] is False
        assert path.read_bytes() == content
    path.unlink()
    path.mkdir()
    assert run("learn", "notebook", "4", ".").code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "which lesson?"),
        (("99",), 2, "no lesson '99'"),
        (("4", "masks.html"), 2, "call it masks.ipynb"),
        (("4", "-"), 2, "standard output"),
        (("--all", "course.ipynb"), 2, "must be a folder"),
        (("--all", "4", "course"), 2, "no lesson; found '4' and 'course'"),
        (("4", "taken/folder"), 3, "could not be written"),
    ],
)
def test_mistakes_are_explained(run: Run, desk: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    (desk / "taken").write_text("a file")
    found = run("learn", "notebook", *arguments)
    assert found.code == code
    assert message in found.err
    assert [path.name for path in desk.iterdir()] == ["taken"]
