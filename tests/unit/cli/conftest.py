"""Run the command line inside the test process, as `run("see", "hello", stdin=b"…")`."""

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

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
