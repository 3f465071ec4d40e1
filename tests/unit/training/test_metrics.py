"""metrics.jsonl: complete lines, each step once, after any interruption of the writing process."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError, FileError, TooLargeError
from regard.training.metrics import MetricsFile
from regard.training.run_files import EMPTY


def line(step: int, **more: Any) -> dict[str, Any]:
    return {"step": step, "loss": 1 / (step + 3), **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three lines, of steps 1 to 3."""
    MetricsFile(tmp_path / "metrics.jsonl").append([line(1), line(2, loss=None, skipped=True), line(3, note="词\n元")])
    return tmp_path / "metrics.jsonl"


def test_append_and_read(path: Path) -> None:
    MetricsFile(path).append([line(4)])
    found = MetricsFile(path).read()
    assert found == [line(1), line(2, loss=None, skipped=True), line(3, note="词\n元"), line(4)]
    assert [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()] == found


def test_an_append_is_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_: int, content: bytes) -> int:
        written.append(bytes(content))
        return len(content)

    monkeypatch.setattr(os, "write", write)
    MetricsFile(path).append([line(4), line(5)])
    assert len(written) == 1
    assert written[0].count(b"\n") == 2


@pytest.mark.parametrize("steps", [[3], [2], [4, 4], [5, 4], [-1], ["4"], [None], [True], [4.0]])
def test_steps_must_increase(steps: list[Any], path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ArgumentError, match="must be a whole number greater than"):
        MetricsFile(path).append([{"step": step} for step in steps])
    assert path.read_bytes() == before


def test_step_may_be_appended_again_after_truncate(path: Path) -> None:
    metrics = MetricsFile(path)
    metrics.append([line(9)])
    metrics.truncate(2)
    metrics.append([line(3)])
    assert [about["step"] for about in metrics.read()] == [1, 2, 3]
    metrics.truncate(0)
    assert path.read_bytes() == b""
    metrics.append([line(0)])
    assert metrics.read() == [line(0)]


@given(kept=st.integers(0, 4), torn=st.integers(0, 60))
def test_torn_file_loses_at_most_one_line(tmp_path_factory: pytest.TempPathFactory, kept: int, torn: int) -> None:
    path = tmp_path_factory.mktemp("metrics") / "m"
    MetricsFile(path).append([line(step) for step in (1, 2, 3)])
    os.truncate(path, max(path.stat().st_size - torn, 0))
    whole = path.read_bytes().count(b"\n")
    metrics = MetricsFile(path)
    assert [about["step"] for about in metrics.read()] == [1, 2, 3][:whole]
    metrics.truncate(kept)
    expected = [1, 2, 3][: min(whole, kept)]
    assert [about["step"] for about in metrics.read()] == expected
    assert path.read_bytes().count(b"\n") == len(expected)
    assert path.read_bytes()[-1:] in (b"", b"\n")


def test_incomplete_line_is_removed_before_an_append(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)
    MetricsFile(path).append([line(3)])
    assert [about["step"] for about in MetricsFile(path).read()] == [1, 2, 3]


def test_zeros_at_the_end_are_a_torn_line(path: Path) -> None:
    """A power failure can leave zeros at the end of a growing file."""
    os.truncate(path, path.stat().st_size + 4096)
    assert len(MetricsFile(path).read()) == 3
    MetricsFile(path).truncate(3)
    assert b"\0" not in path.read_bytes()


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"[]", b"3", b"\xff", b'{"loss": 1}', b'{"step": 1}', b'{"step": "2"}', b'{"step": 2, "x": NaN}']
)
def test_invalid_line_is_named(bad: bytes, path: Path) -> None:
    lines = path.read_bytes().splitlines()
    lines[1] = bad
    path.write_bytes(b"\n".join(lines) + b"\n")
    for use in (MetricsFile.read, lambda metrics: metrics.truncate(1), lambda metrics: metrics.append([line(9)])):
        with pytest.raises(FileError, match=r"metrics.jsonl, line 2, is not") as caught:
            use(MetricsFile(path))
        assert "第 2 行" in caught.value.text("zh")
    assert path.read_bytes().splitlines() == lines


def test_non_json_values_raise(path: Path) -> None:
    with pytest.raises(ArgumentError, match="metrics must be JSON values"):
        MetricsFile(path).append([line(4), line(5, loss=float("nan"))])
    assert len(MetricsFile(path).read()) == 3


def test_missing_file_has_no_lines(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "m")
    assert metrics.read() == []
    metrics.truncate(3)
    metrics.sync()
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileError, match="could not be written"):
        MetricsFile(tmp_path / "no" / "m").append([line(1)])
    with pytest.raises(FileError, match="is a folder"):
        MetricsFile(tmp_path).read()


def test_full_disk_leaves_complete_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = path.read_bytes(), os.write
    answers = iter([lambda d, content: real(d, content[:7]), None])

    def fill(descriptor: int, content: bytes) -> int:
        answer = next(answers)
        if answer is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return answer(descriptor, content)

    metrics = MetricsFile(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with pytest.raises(TooLargeError, match="No space left"):
            metrics.append([line(4)])
    assert path.read_bytes() == before
    metrics.append([line(4)])


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_failed_truncate_changes_nothing(call: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def refuse(*_: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(FileError, match="Input/output error"):
            MetricsFile(path).truncate(1)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_truncate_removes_leftovers(path: Path) -> None:
    (path.parent / "metrics.jsonl.tmp-4194305").write_text("half")
    (path.parent / "metricsxjsonl.tmp-4194305").write_text("not ours")
    MetricsFile(path).truncate(3)
    assert sorted(found.name for found in path.parent.iterdir()) == ["metrics.jsonl", "metricsxjsonl.tmp-4194305"]


def test_sync_reaches_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    MetricsFile(path).sync()
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]


def test_rewind_keeps_known_content_and_parses_nothing_after_it(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    assert metrics.digest() == EMPTY
    metrics.append([{"step": 1, "loss": 2.5}])
    known = metrics.digest()
    with metrics.path.open("ab") as file:
        file.write(b"\0\0\n{")
    again = MetricsFile(metrics.path)
    again.rewind(1, known)
    again.append([{"step": 2, "loss": 2.25}])
    assert [line["step"] for line in again.read()] == [1, 2]
    metrics.path.write_bytes(metrics.path.read_bytes().replace(b"2.5", b"2.7"))
    with pytest.raises(FileError, match="up to step 1") as caught:
        again.rewind(1, known)
    assert "第 1 步" in caught.value.text("zh")
    metrics.path.unlink()
    again.rewind(1, known)  # the user moved the file away, as the message advises
    again.append([{"step": 2, "loss": 2.25}])
    again.rewind(0, EMPTY)
    assert again.read() == []
