"""Run the command line inside the test process, as `run("see", "hello", stdin=b"…")`."""

import io
import sys
from pathlib import Path

import pytest
from command_line import CommandResult, Run
from tiny_language import poet_folder, translator_folder

from regard.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_command(*arguments: str, stdin: bytes = b"") -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        return CommandResult(code, *capsys.readouterr())

    return run_command


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `translator` and a `poet` of random weights."""
    folder = tmp_path_factory.mktemp("assets")
    translator_folder(folder / "translator")
    poet_folder(folder / "poet")
    return folder


@pytest.fixture
def bundled(tiny_models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny models in place of the bundled ones."""
    monkeypatch.setattr("regard.language.loading.ASSETS", tiny_models)
    return tiny_models
