"""Ctrl-C at any time from the first import on: exit code 130 and nothing on stderr."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run

pytestmark = pytest.mark.usefixtures("signals_at_default")

PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Press:
    left = int(sys.argv.pop(1))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        cls.left -= 1
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

"""
PROGRAM = "from regard.cli import main\nsys.meta_path.insert(0, Press)\nsys.exit(main())\n"
DELETED = """
class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
import regard.cli.explain_command, time
from regard.cli import main
def read_matrix(text, option):
    Deleted()
    time.sleep(10)
regard.cli.explain_command.read_matrix = read_matrix
sys.exit(main())
"""


def press(program: str, at: int, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command with Ctrl-C at the n-th import after `main` is called."""
    command = [sys.executable, "-c", PRESSED + program, str(at), *arguments]
    return subprocess.run(command, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("at", "arguments"),
    [
        *((at, ["explain"]) for at in (1, 2, 5, 20, 80, 200, 300)),  # numpy is among the last
        (400, ["translate", "hello"]),
        (700, ["train", "copy", "--out", "nowhere"]),  # torch
    ],
)
def test_during_an_import(at: int, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = press(PROGRAM, at, *arguments)
    assert (done.returncode, done.stderr.decode(), done.stdout) == (130, "", b"")
    assert not any(tmp_path.iterdir())


def test_the_number_of_imports_is_large_enough() -> None:
    assert press(PROGRAM, 10**6, "explain").returncode == 0
    assert press(PROGRAM, 301, "explain").returncode == 130


def test_an_interrupt_that_python_only_prints() -> None:
    done = press(DELETED, 0, "explain")
    assert (done.returncode, done.stderr.decode()) == (130, "")


def test_an_ignored_signal_stays_ignored() -> None:
    program = PRESSED.replace("default_int_handler", "SIG_IGN") + PROGRAM
    done = subprocess.run([sys.executable, "-c", program, "5", "explain"], capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_call_from_python_keeps_signal_handlers(run: Run) -> None:
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert run("explain").code == 0
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
