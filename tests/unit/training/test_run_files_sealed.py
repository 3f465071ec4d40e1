"""JSON files with their own hash: values are restored, and any changed bit is detected."""

import re
from pathlib import Path

import pytest

from regard.errors import FileError, TooLargeError
from regard.training import run_files
from regard.training.run_files import check_hashes, hash_of, read_hashed, write_hashed

ABOUT = {"loss": 0.1 + 0.2, "name": "诗", "none": None, "files": {"a": "b"}}


def test_values_are_restored(tmp_path: Path) -> None:
    write_hashed(tmp_path / "run.json", ABOUT)
    assert read_hashed(tmp_path / "run.json") == ABOUT
    assert read_hashed(tmp_path / "other.json") is None


def test_every_flipped_bit_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_hashed(path, ABOUT)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(FileError) as caught:
            read_hashed(path)
        assert str(path) in caught.value.text("en")
    assert re.search("[\u4e00-\u9fff]", caught.value.text("zh"))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"sha256": 1}', b"\xff"])
def test_file_without_a_hash_raises(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(FileError, match="has changed since it was written"):
        read_hashed(tmp_path / "run.json")


def test_hashes_of_files_are_checked(tmp_path: Path) -> None:
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


def test_full_disk_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_files, "replace_file", full)
    with pytest.raises(TooLargeError, match="free some space"):
        write_hashed(tmp_path / "run.json", ABOUT)
