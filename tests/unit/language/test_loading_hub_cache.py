"""`regard pull` from a server on this machine into a cache of its own, and models found there by their id."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from errno import ENOSPC
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import regard
from hostile_hub import CONFIG, content, header
from regard.errors import ArgumentError, FileError
from regard.language.loading import cache_folder, cached, pull

NAME, COMMIT = "org/tiny-model", "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "model.safetensors": content(header()),
    "modeling.py": b"raise SystemExit",
    "pytorch_model.bin": b"\x80\x04",
    "onnx/model.safetensors": b"the same in another format",
    "README.md": b"# a model",
}


class Hub(BaseHTTPRequestHandler):
    """The few addresses of the hub that a download needs."""

    asked: ClassVar[list[str]] = []
    cut: ClassVar[set[str]] = set()

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, whole: bool) -> None:
        path = self.path.split("?")[0].strip("/")
        if whole:
            self.asked.append(path)
        if path in (f"api/models/{NAME}/revision/main", f"api/models/{NAME}"):
            siblings = [{"rfilename": name} for name in FILES]
            about = {"id": NAME, "modelId": NAME, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
            self._send(json.dumps(about).encode(), {"Content-Type": "application/json"}, whole)
            return
        if path in (f"api/models/{NAME}/tree/{COMMIT}", f"api/models/{NAME}/tree/main"):
            tree = [{"type": "file", "path": name, "size": len(data), "oid": "0" * 40} for name, data in FILES.items()]
            self._send(json.dumps(tree).encode(), {"Content-Type": "application/json"}, whole)
            return
        start, _, name = path.partition("/resolve/")
        file = name.partition("/")[2]
        if start == NAME and file in FILES:
            data, headers = FILES[file], {"X-Repo-Commit": COMMIT, "ETag": f'"{sha256(FILES[file]).hexdigest()}"'}
            first = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
            self._send(data, headers, whole, first, cut=whole and file in self.cut)
            return
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, data: bytes, headers: dict[str, str], whole: bool, first: int = 0, cut: bool = False) -> None:
        self.send_response(206 if first else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        if whole:
            self.wfile.write(data[first : first + 100] if cut else data[first:])
            if cut:
                self.close_connection = True

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Hub.asked.clear()
    Hub.cut.clear()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield server.server_name
    server.shutdown()
    server.server_close()


def regard_pull(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the package reads its variables once."""
    program = "import sys; from regard.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, "pull", *arguments],
        env=os.environ | {"REGARD_LANG": "en"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_model_is_pulled_and_loaded_by_its_id(hub: str) -> None:
    with pytest.raises(FileError, match=f"regard pull {NAME}"):
        regard.load(NAME)
    done = regard_pull(NAME, "--json")
    assert done.returncode == 0, (done.stderr, Hub.asked)
    folder = Path(json.loads(done.stdout)["folder"])
    assert folder == cached(NAME)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    asked = len(Hub.asked)
    model = regard.load(NAME)
    assert model.config.vocab_size == CONFIG["vocab_size"]
    assert len(Hub.asked) == asked, "load never downloads"
    assert regard_pull(NAME).returncode == 0
    assert not any("resolve" in path for path in Hub.asked[asked:]), "nothing is downloaded twice"
    offline = regard_pull(NAME, HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr


def test_an_interrupted_download_continues(hub: str) -> None:
    Hub.cut.add("model.safetensors")
    first = regard_pull(NAME, HF_HUB_DOWNLOAD_TIMEOUT="2")
    assert first.returncode == 3
    assert "HF_ENDPOINT" in first.stderr
    Hub.cut.clear()
    assert regard_pull(NAME).returncode == 0
    found = cached(NAME)
    assert found is not None
    assert (found / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_offline_nothing_is_asked(hub: str) -> None:
    done = regard_pull(NAME, HF_HUB_OFFLINE="1")
    assert done.returncode == 3
    assert "HF_HUB_OFFLINE" in done.stderr
    assert not Hub.asked


def test_a_name_that_the_hub_does_not_have(hub: str) -> None:
    done = regard_pull("org/other")
    assert done.returncode == 3
    assert "org/other" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b/c", "a/../b", "http://x/y", "a b", "-x/y", "a/" + "b" * 300, "a/b\n"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="organisation/name"):
        pull(name)
    assert cached(name) is None


def test_a_revision_that_is_a_path_is_refused() -> None:
    with pytest.raises(ArgumentError, match="revision"):
        pull("a/b", "../../etc")


def test_the_cache_is_where_the_package_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c"


def test_a_reference_that_leads_elsewhere_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    refs = tmp_path / "models--a--b" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("../../../..")
    assert cached("a/b") is None


def test_one_file_of_a_repository(hub: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A repository of GGUF files: the only one is pulled, of several `--file` chooses."""
    for name in ("model.safetensors", "onnx/model.safetensors"):
        monkeypatch.delitem(FILES, name)
    monkeypatch.setitem(FILES, "a-Q4_0.gguf", b"GGUF, one")
    done = regard_pull(NAME, "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["folder"], "a-Q4_0.gguf").read_bytes() == b"GGUF, one"
    monkeypatch.setitem(FILES, "b-Q8_0.gguf", b"GGUF, two")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "another home"))  # the files of a commit are listed in the cache
    several = regard_pull(NAME)
    assert several.returncode == 3
    assert "a-Q4_0.gguf, b-Q8_0.gguf" in several.stderr
    assert "--file" in several.stderr
    one = regard_pull(NAME, "--file", "b-Q8_0.gguf", "--json")
    assert one.returncode == 0, one.stderr
    assert Path(json.loads(one.stdout)["folder"]).read_bytes() == b"GGUF, two"
    absent = regard_pull(NAME, "--file", "c.gguf")
    assert absent.returncode == 3
    assert "c.gguf" in absent.stderr
    for wrong in ("../x.gguf", "/etc/passwd", "x.bin"):
        assert regard_pull(NAME, "--file", wrong).returncode == 2


def test_an_id_without_an_organisation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As gpt2: `regard pull gpt2`, then `regard see --model gpt2`."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--tiny" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (tmp_path / "models--tiny" / "refs").mkdir()
    (tmp_path / "models--tiny" / "refs" / "main").write_text(COMMIT)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes(FILES[name])
    assert regard.load("tiny").folder == folder
    with pytest.raises(FileError, match="teeny"):
        regard.load("teeny")


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(FileError, match=r"does not fit on the disk of .*cache: \d+\.\d GiB are free"):
        pull(NAME, quiet=True)
