"""Run the command line inside the test process, as `run("see", "hello", stdin=b"…")`."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tiny_language import poet_folder, translator_folder

from regard.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def go(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return go


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `translator` and a `poet` whose weights nobody trained."""
    folder = tmp_path_factory.mktemp("assets")
    translator_folder(folder / "translator")
    poet_folder(folder / "poet")
    return folder


@pytest.fixture
def bundled(tiny_models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, in place of the models that come with regard."""
    monkeypatch.setattr("regard.language.loading.ASSETS", tiny_models)
    return tiny_models
