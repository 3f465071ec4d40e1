"""Sealed files: read back as they were, and one changed bit is noticed wherever it is."""

import re
from pathlib import Path

import pytest

from regard.errors import FileError, TooLargeError
from regard.training import run_files
from regard.training.run_files import check_hashes, hash_of, read_sealed, write_sealed

ABOUT = {"loss": 0.1 + 0.2, "name": "诗", "none": None, "files": {"a": "b"}}


def test_values_come_back(tmp_path: Path) -> None:
    write_sealed(tmp_path / "run.json", ABOUT)
    assert read_sealed(tmp_path / "run.json") == ABOUT
    assert read_sealed(tmp_path / "other.json") is None


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_sealed(path, ABOUT)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(FileError) as caught:
            read_sealed(path)
        assert str(path) in caught.value.text("en")
    assert re.search("[\u4e00-\u9fff]", caught.value.text("zh"))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"sha256": 1}', b"\xff"])
def test_what_was_never_sealed_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(FileError, match="is not what was written"):
        read_sealed(tmp_path / "run.json")


def test_files_are_held_against_their_hashes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    hashes = {"a": hash_of(tmp_path / "a"), "b": hash_of(tmp_path / "b")}
    assert hashes["b"] is None
    check_hashes(tmp_path, hashes, remove="c")
    (tmp_path / "a").write_text("y")
    with pytest.raises(FileError, match="remove c"):
        check_hashes(tmp_path, hashes, remove="c")
    (tmp_path / "a").unlink()
    with pytest.raises(FileError, match="remove c"):
        check_hashes(tmp_path, hashes, remove="c")


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_files, "replace_file", full)
    with pytest.raises(TooLargeError, match="make room"):
        write_sealed(tmp_path / "run.json", ABOUT)
