"""Reading files: only regular ones of bounded size, inside their folder; reading never blocks."""

import os
import pty
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import AbsentFileError, FileError
from regard.files.safe_open import UNLIMITED, check_file, open_descriptor, open_file, read_file


def refused(path: Path, key: str, most: int = 100, within: Path | None = None) -> str:
    for read in (read_file, open_file, check_file):
        with pytest.raises(FileError) as caught:
            read(path, most=most, within=within)
        assert caught.value.key == key, str(caught.value)
    return str(caught.value)


def test_regular_file_is_read_completely(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\r\n\x00" * 40_000)
    assert read_file(path, most=120_000) == path.read_bytes()
    (tmp_path / "link").symlink_to(path)  # a user may give a link
    assert read_file(tmp_path / "link", most=UNLIMITED) == path.read_bytes()


def test_too_large_file_raises_with_size_and_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(3 * 2**10))
    assert read_file(path, most=3 * 2**10) == bytes(3 * 2**10)
    assert "has 3.0 KiB, but the limit is 1.0 KiB" in refused(path, "file-too-large", most=2**10)
    assert "has 3,072 B, but the limit is 3,071 B" in refused(path, "file-too-large", most=3071)
    with path.open("wb") as file:
        file.truncate(2**40)  # sparse: takes no disk space, but would fill the memory
    refused(path, "file-too-large")


def test_file_without_a_size_is_limited_too() -> None:
    path = Path("/proc/self/environ")
    if not path.exists():
        pytest.skip("there is no /proc")
    assert path.stat().st_size == 0
    with pytest.raises(FileError) as caught:
        read_file(Path("/proc/self/smaps"), most=1000)
    assert caught.value.key == "file-too-large"
    assert read_file(Path("/proc/self/smaps"), most=2**26)


def test_special_files_raise_with_their_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "is a FIFO" in refused(tmp_path / "fifo", "file-is-fifo")
    (tmp_path / "link").symlink_to("fifo")
    refused(tmp_path / "link", "file-is-fifo")
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(str(tmp_path / "socket"))
        refused(tmp_path / "socket", "file-is-socket")
    refused(tmp_path, "file-is-folder")
    main, other = pty.openpty()
    try:
        refused(Path(os.ttyname(other)), "file-is-device")
    finally:
        os.close(main)
        os.close(other)
    with pytest.raises(FileError, match="is a FIFO"):  # also for writing
        open_descriptor(tmp_path / "fifo", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def test_absent_and_unreadable_files_raise(tmp_path: Path) -> None:
    with pytest.raises(AbsentFileError, match="no file"):
        read_file(tmp_path / "none", most=1)
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", "model-unreadable")
    (tmp_path / "nothing").symlink_to("none")
    refused(tmp_path / "nothing", "file-absent")
    (tmp_path / "a").write_text("a")
    refused(tmp_path / "a" / "b", "model-unreadable")


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "parts" / "a").write_text("inside")
    (folder / "in").symlink_to("parts/a")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("../secret")
    (folder / "twice").symlink_to("out")
    (folder / "away").symlink_to(tmp_path)
    assert read_file(folder / "in", most=10, within=folder) == b"inside"
    for name in ("out", "up", "twice", "away/secret", "../secret", "parts/../../secret"):
        refused(folder / name, "model-outside", within=folder)
    (tmp_path / "elsewhere").symlink_to(folder)  # the folder itself may be a link given by the user
    assert read_file(tmp_path / "elsewhere" / "in", most=10, within=tmp_path / "elsewhere") == b"inside"
    assert read_file(folder / "out", most=10) == b"secret"


def test_hugging_face_cache_links_to_its_blobs(tmp_path: Path) -> None:
    cache = tmp_path / "models--a--b"
    snapshot = cache / "snapshots" / "0f"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    (cache / "blobs" / "1234").write_text("blob")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "1234").write_text("of another")
    (snapshot / "config.json").symlink_to("../../blobs/1234")
    (snapshot / "out.json").symlink_to("../../../blobs/1234")
    assert read_file(snapshot / "config.json", most=10, within=snapshot) == b"blob"
    refused(snapshot / "out.json", "model-outside", within=snapshot)


def test_descriptor_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    with open_file(tmp_path / "a", most=10) as file:
        program = f"import os\ntry:\n  os.fstat({file.fileno()})\nexcept OSError: print('closed')"
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, close_fds=False)
    assert found.stdout == "closed\n"


def test_no_descriptor_leaks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(bytes(200))
    lowest, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, highest))
    try:
        for _ in range(300):
            for name in ("fifo", "large", "none"):
                with pytest.raises(FileError):
                    read_file(tmp_path / name, most=100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, highest))
