"""benchmarks/commit: which commit was measured, by whoever knows it."""

import subprocess

import pytest

from benchmarks import commit as module
from benchmarks.commit import commit, with_commit


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_COMMIT", raising=False)


def git(patch: pytest.MonkeyPatch, changed: str) -> None:
    patch.setattr(module, "_git", lambda verb, *_: {"rev-parse": "abc1234", "status": changed}[verb])


def test_git_tells_it_and_whether_the_source_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    git(monkeypatch, "")
    assert commit() == "abc1234"
    git(monkeypatch, " M src/regard/axes.py")
    assert commit() == "abc1234 and changes"


def test_who_says_it_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    git(monkeypatch, "")
    monkeypatch.setenv("REGARD_COMMIT", "def5678")
    assert with_commit("A report") == "A report, commit def5678"


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.CalledProcessError(128, "git")])
def test_nothing_is_said_where_nobody_knows(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> str:
        raise error

    monkeypatch.setattr(module, "_git", fail)
    assert commit() == ""
    assert with_commit("A report") == "A report"
