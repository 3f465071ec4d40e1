"""A file is written whole or not at all."""

import os
from pathlib import Path

import pytest

from regard.errors import ArgumentError, FileError
from regard.files import ending_of, reason_of, write_aside


def test_it_stands_in_its_place(tmp_path: Path) -> None:
    target = tmp_path / "a"
    write_aside(target, lambda aside: aside.write_text("new"))
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), LookupError("first line\nsecond")])
def test_a_write_that_stops_leaves_the_old_one(error: Exception, tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")

    def half(aside: Path) -> None:
        aside.write_text("ne")
        raise error

    with pytest.raises(FileError, match=reason_of(error)) as caught:
        write_aside(target, half, LookupError)
    assert caught.value.key == "file-unwritable"
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("mask", "wanted"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_it_may_be_read_by_whom_the_umask_says(mask: int, wanted: int, tmp_path: Path) -> None:
    def private(aside: Path) -> None:  # as safetensors writes
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL, 0o600))

    before = os.umask(mask)
    try:
        write_aside(tmp_path / "a", private)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == wanted


def test_a_name_that_promises_something_else_is_refused() -> None:
    assert ending_of(Path("a.b/c.PDF"), ".png", ".pdf") == ".pdf"
    assert ending_of(Path("a.b/c"), ".png", ".pdf") == ".png"
    with pytest.raises(ArgumentError, match=r"a\.b/c\.jpg has .*; call it a\.b/c\.png \(possible: \.png, \.pdf\)"):
        ending_of(Path("a.b/c.jpg"), ".png", ".pdf")


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_is_not_written_over(folder: str) -> None:
    with pytest.raises(FileError) as caught:
        write_aside(Path(folder), lambda aside: aside.write_text("new"))
    assert caught.value.key == "file-is-folder"


def test_the_reason_is_one_line() -> None:
    assert reason_of(OSError(13, "Permission denied", "/a/b")) == "Permission denied"
    assert reason_of(LookupError("first line\nsecond")) == "first line"
    assert reason_of(LookupError()) == "LookupError"
