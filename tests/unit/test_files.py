"""A file is written whole or not at all."""

from pathlib import Path

import pytest

from regard.errors import FileError
from regard.files import reason_of, write_aside


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


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_is_not_written_over(folder: str) -> None:
    with pytest.raises(FileError) as caught:
        write_aside(Path(folder), lambda aside: aside.write_text("new"))
    assert caught.value.key == "file-is-folder"


def test_the_reason_is_one_line() -> None:
    assert reason_of(OSError(13, "Permission denied", "/a/b")) == "Permission denied"
    assert reason_of(LookupError("first line\nsecond")) == "first line"
    assert reason_of(LookupError()) == "LookupError"
