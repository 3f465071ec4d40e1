"""Languages, exit codes, streams: what holds for every command."""

import errno
import os
import re
import subprocess
import sys

import pytest
from command_line import Run

from regard.cli import application, main
from regard.cli.entry import split_general_options
from regard.errors import MissingPackageError, TooLargeError

PROGRAM = [sys.executable, "-m", "regard"]


def shell(*arguments: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, timeout=60, **options)  # type: ignore[call-overload]


# --- help ---------------------------------------------------------------------------------------------------


COMMANDS = [[], ["see"], ["heads"], ["translate"], ["generate"], ["explain"], ["doctor"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0] if c else "regard")
def test_help_is_in_both_languages(run: Run, command: list[str]) -> None:
    english, chinese = run(*command, "--help"), run(*command, "--lang", "zh", "-h")
    assert english.code == chinese.code == 0
    assert english.out.startswith(f"Usage: {' '.join(['regard', *command])}")
    assert chinese.out.startswith("用法：")
    assert not english.err + chinese.err
    prompts = re.compile('"[^"]*"')  # the poet reads only Chinese
    assert not any("\u4e00" <= c <= "\u9fff" for c in prompts.sub("", english.out))
    for word in ("Usage", "Options", "Show", "default"):
        assert word not in chinese.out
    for option in ("--lang zh|en", "--debug", "--help, -h"):
        assert option in english.out
        assert option in chinese.out


def test_without_a_command_help_is_printed(run: Run) -> None:
    assert run() == run("--help")


def test_version(run: Run) -> None:
    from regard import __version__

    assert run("--version") == (0, f"regard {__version__}\n", "")


def test_help_imports_no_large_package() -> None:
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "regard", "see", "--help"], capture_output=True, timeout=60
    )
    assert found.returncode == 0
    imported = {line.rsplit(b"|", 1)[-1].strip().decode() for line in found.stderr.splitlines()}
    assert "regard.cli.see_command" in imported
    assert not imported & {"torch", "numpy", "matplotlib", "transformers", "rich.console", "tokenizers"}


# --- languages ----------------------------------------------------------------------------------------------


def test_lang_overrides_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_LANG", "zh_CN.UTF-8")
    assert run("explain").out.startswith("手算注意力")
    assert run("--lang", "en", "explain").out.startswith("Attention by hand")
    assert run("explain", "--lang=EN").out.startswith("Attention by hand")


def test_general_options_anywhere_before_two_dashes() -> None:
    assert split_general_options(["--debug", "see", "a", "--lang", "zh"]) == (["see", "a"], "zh", True)
    assert split_general_options(["see", "--", "--debug", "--lang"]) == (
        ["see", "--", "--debug", "--lang"],
        None,
        False,
    )


@pytest.mark.parametrize("arguments", [["--lang", "fr"], ["see", "--lang"], ["--lang="]])
def test_an_unknown_language_is_refused(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("regard: --lang must be one of en|zh; found")


# --- usage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["expalin"], "there is no command 'expalin'; did you mean explain?"),
        (
            ["zzz"],
            "no command 'zzz'; there are: see, heads, survey, translate, generate, chat, explain, train, evaluate, "
            "plot, film, convert, pull, doctor",
        ),
        (["explain", "--cusal"], "there is no option --cusal; did you mean --causal?"),
        (["see", "--jsno"], "did you mean --json?"),
        (["see", "--pdf", "x.pdf", "hi"], "there is no option --pdf; did you mean --png FILE.pdf?"),
        (["plot", "--pdf=x.pdf", "run"], "did you mean --png FILE.pdf?"),
        (["train", "--svg", "x.svg"], "there is no option --svg (see"),
        (["see", "--lnag", "zh"], "did you mean --lang?"),
        (["see", "-5 degrees"], "text that begins with - goes after --"),
        (["explain", "--q"], "option --q needs a value"),
        (["explain", "--json=1"], "option --json takes no value"),
        (["explain", "stray", "words"], "regard explain takes no such arguments: stray words"),
        (["pull"], "ID is missing; write: regard pull ID (see regard pull --help)"),
        (["convert", "model.gguf"], "FOLDER is missing; write: regard convert SOURCE FOLDER (see regard convert"),
        (["doctor", "stray"], "regard doctor takes no such arguments: stray"),
    ],
)
def test_usage_is_one_line_and_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("regard: ")
    assert message in err
    assert err.count("\n") == 1


def test_usage_errors_in_chinese(run: Run) -> None:
    assert run("explain", "--cusal", "--lang", "zh").err == (
        "regard: 没有选项 --cusal；是不是想写 --causal？（见 regard explain --help）\n"
    )


# --- other errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MissingPackageError("missing-package", what="x", package="torch", extra="torch"), 4, "pip install"),
        (TooLargeError("explain-too-large", T=1, S=1, need="9 TiB", free="1 B"), 5, "9 TiB"),
        (MemoryError(), 5, "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device"), 5, "out of disk space"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.txt"), 3, "a.txt: No such file"),
        (RuntimeError("boom\nbang"), 70, "RuntimeError: boom bang; run again with --debug"),
        (KeyError("x"), 70, "KeyError"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_errors_become_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("regard.cli.doctor_command.inspect", fail)
    monkeypatch.setattr("regard.cli.entry.discard_output", lambda stream: None)
    finished = run("doctor")
    assert (finished.code, finished.out) == (code, "")
    assert "Traceback" not in finished.err
    assert message in finished.err
    assert finished.err.count("\n") == bool(message)
    if message:
        debugged = run("doctor", "--debug")
        assert "Traceback" in debugged.err
        assert debugged.code == code


def test_bugs_have_their_own_exit_code() -> None:
    assert application.application() is application.application()
    from regard.cli.entry import message_and_code

    assert message_and_code(ZeroDivisionError("x"))[1] not in (0, 1, 2, 3, 4, 5, 130)


# --- streams, in a separate process -------------------------------------------------------------------------


def test_data_goes_to_stdout_and_messages_to_stderr() -> None:
    found = shell("see", "--model", "handmade", "--lang", "zh", "我", "爱", "你", env={**os.environ, "PYTHONUTF8": "1"})
    assert found.returncode == 0
    assert "我" in found.stdout.decode()
    assert "手工" in found.stderr.decode()
    assert b"\x1b" not in found.stdout + found.stderr


def test_a_closed_pipe_and_a_full_disk() -> None:
    read, write = os.pipe()
    os.close(read)
    closed = subprocess.run([*PROGRAM, "explain"], stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (closed.returncode, closed.stderr) == (0, b"")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            found = subprocess.run([*PROGRAM, "explain"], stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert (found.returncode, found.stderr) == (5, b"regard: out of disk space\n")


def test_main_reads_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["regard", "--version"])
    monkeypatch.setattr("regard.cli.interrupts.exit_on_interrupt", lambda: False)  # not in the process of the tests
    assert main() == 0
    assert capsys.readouterr().out.startswith("regard ")
