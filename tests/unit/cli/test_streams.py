"""Streams that are closed, full or in another encoding, and a deleted current folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run

from regard.cli.streams import join_words

PROGRAM = [sys.executable, "-m", "regard"]
pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a POSIX shell and /dev/full")


def shell(line: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a line of sh in which $REGARD is the program, and capture its stdout and stderr."""
    command = " ".join(f"'{word}'" for word in PROGRAM)
    environment = {**os.environ, "PYTHONUTF8": "0", **variables}
    return subprocess.run(
        ["sh", "-c", line.replace("$REGARD", command)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )


# --- closed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["explain --json", "--help", "see --model handmade a b"])
def test_a_closed_stdout_is_reported(command: str) -> None:
    done = shell(f"$REGARD {command} >&-")
    assert done.returncode == 3
    assert done.stderr.decode().splitlines()[-1].startswith("regard: stdout is closed")


def test_files_are_saved_despite_a_closed_stdout(tmp_path: Path) -> None:
    """The saved file must not get the descriptor of stdout."""
    done = shell(f"$REGARD see --model handmade a b --save {tmp_path}/a.safetensors >&-")
    assert done.returncode == 3
    from regard import read_trace

    assert len(read_trace(tmp_path / "a.safetensors")) == 1


@pytest.mark.parametrize("command", ["see --model handmade a b", "train", "nonsense"])
def test_messages_never_go_to_stdout(command: str) -> None:
    usual, closed = shell(f"$REGARD {command}"), shell(f"$REGARD {command} 2>&-")
    assert usual.stderr
    assert (closed.returncode, closed.stdout, closed.stderr) == (usual.returncode, usual.stdout, b"")


@pytest.mark.parametrize("command", ["see -", "explain --q - --k 1 --v 1", "learn check softmax -"])
def test_a_closed_stdin_is_reported(command: str) -> None:
    done = shell(f"$REGARD {command} <&-")
    assert done.returncode == 3
    assert b"stdin is closed" in done.stderr


def test_all_three_closed() -> None:
    assert shell("$REGARD explain <&- >&- 2>&-").returncode == 3


# --- full, or without a reader ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["see --model handmade a b", "nonsense"])
def test_a_full_stderr_loses_only_messages(command: str) -> None:
    usual, full = shell(f"$REGARD {command}"), shell(f"$REGARD {command} 2>/dev/full")
    assert (full.returncode, full.stdout) == (usual.returncode, usual.stdout)


def test_a_closed_stderr_pipe_loses_only_messages() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*PROGRAM, "see", "--model", "handmade", "a", "b"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=write, timeout=120, check=False)
    os.close(write)
    assert done.returncode == 0
    assert b"a b" in done.stdout


# --- encodings --------------------------------------------------------------------------------------------

ENCODINGS = ["cp1252", "ascii", "utf-8", "gbk", "utf-16"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_the_same_under_every_encoding(encoding: str) -> None:
    done = shell("$REGARD translate hello --json", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode("utf-8" if encoding != "utf-16" else "utf-16-le")
    assert json.loads(text)["output"] == "你好"
    assert text.isascii() == (encoding != "utf-8")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "gbk"])
def test_unencodable_text_is_escaped_with_a_message(encoding: str) -> None:
    done = shell("$REGARD translate hello", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    if encoding == "gbk":
        assert (done.stdout.decode("gbk"), done.stderr) == ("你好\n", b"")
    else:
        assert done.stdout == b"\\u4f60\\u597d\n"
        assert f"stdout is {encoding}".encode() in done.stderr


def test_the_c_locale_reads_arguments_as_utf_8() -> None:
    variables = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "LANG": "C"}
    done = shell("$REGARD translate --json '你好'", **variables)
    assert done.returncode == 2
    assert b"\\u4f60\\u597d" in done.stderr
    done = shell("$REGARD see --model handmade --json '猫 喜欢 鱼'", **variables)
    assert json.loads(done.stdout)["text"] == "猫 喜欢 鱼"
    assert done.stdout.isascii()


def test_surrogates_that_are_not_utf_8_stay() -> None:
    assert join_words(["bad\udcff", "byte"]) == "bad\udcff byte"
    assert join_words(["\udce4\udcbd\udca0"]) == "你"


def test_json_of_a_surrogate_is_valid(run: Run) -> None:
    finished = run("see", "--model", "handmade", "--json", "bad\udcff")
    assert finished.code == 0
    assert json.loads(finished.out)["text"] == "bad\udcff"


# --- the current folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train copy --out x", "learn start softmax"])
def test_a_deleted_folder_is_reported(command: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell(f"cd {tmp_path}/gone && rmdir ../gone && $REGARD {command}")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"regard: the current folder has been deleted")


def test_help_needs_no_folder(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    assert shell(f"cd {tmp_path}/gone && rmdir ../gone && $REGARD see --help").returncode == 0
