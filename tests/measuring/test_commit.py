"""benchmarks/commit: the measured commit, from the environment or from git."""

import subprocess

import pytest

from benchmarks import commit as module
from benchmarks.commit import commit, with_commit


@pytest.fixture(autouse=True)
def no_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_COMMIT", raising=False)


def git(patch: pytest.MonkeyPatch, changed: str) -> None:
    patch.setattr(module, "_git", lambda verb, *_: {"rev-parse": "abc1234", "status": changed}[verb])


def test_the_commit_from_git_and_whether_the_source_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    git(monkeypatch, "")
    assert commit() == "abc1234"
    git(monkeypatch, " M src/regard/axes.py")
    assert commit() == "abc1234 and changes"


def test_the_environment_variable_has_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    git(monkeypatch, "")
    monkeypatch.setenv("REGARD_COMMIT", "def5678")
    assert with_commit("A report") == "A report, commit def5678"


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.CalledProcessError(128, "git")])
def test_an_unknown_commit_is_empty(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: str) -> str:
        raise error

    monkeypatch.setattr(module, "_git", fail)
    assert commit() == ""
    assert with_commit("A report") == "A report"
