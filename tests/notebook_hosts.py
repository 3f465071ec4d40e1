"""Notebook programs for the tests in a browser: JupyterLab, Notebook 7 and marimo, each on loopback with its own home.

A server reads no settings of the person, fetches no news, and ends with the test. Its token is never part of a command.
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext

CLOSED = "http://127.0.0.1:9"
"""A proxy address at a port without a server, so that a request to another host fails at once."""
SETTINGS = {
    "LabApp": {"expose_app_in_browser": True, "news_url": None, "extension_manager": "readonly"},
    "JupyterNotebookApp": {"expose_app_in_browser": True},
    "ServerApp": {"ip": "127.0.0.1", "port": 0, "open_browser": False, "allow_root": True, "terminals_enabled": False},
}
NO_NEWS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


@dataclass(frozen=True)
class Host:
    """A running server."""

    url: str
    token: str
    scheme: str = "token"

    def sign_in(self, context: BrowserContext) -> None:
        """Give the browser its cookie; no address holds the token afterwards."""
        reply = context.request.get(self.url, headers=self.headers)
        assert reply.ok, reply.status

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"{self.scheme} {self.token}"}


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """A notebook of code cells, without outputs."""
    import nbformat  # takes more than a second, so not where tests are collected

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)


def write_marimo(path: Path, cells: Sequence[str]) -> None:
    """A marimo notebook: one function for each cell, names passed on by marimo itself."""
    parts = ["import marimo", "app = marimo.App()"]
    for cell in cells:
        body = "\n".join(f"    {line}" for line in cell.splitlines())
        parts.append(f"@app.cell\ndef _():\n{body}\n    return")
    path.write_text("\n\n".join([*parts, 'if __name__ == "__main__":\n    app.run()\n']), encoding="utf-8")


@contextmanager
def jupyter(folder: Path, program: str) -> Iterator[Host]:
    """JupyterLab ("lab") or Notebook 7 ("notebook") with the notebooks of a folder."""
    environment = own_home(folder.parent / f"home-{program}")
    config = Path(environment["JUPYTER_CONFIG_DIR"])
    (config / "labconfig").mkdir(parents=True, exist_ok=True)
    (config / "labconfig" / "page_config.json").write_text(json.dumps(NO_NEWS), encoding="utf-8")
    for name in ("jupyter_server_config.json", "jupyter_lab_config.json", "jupyter_notebook_config.json"):
        (config / name).write_text(json.dumps(SETTINGS), encoding="utf-8")
    runtime = Path(environment["JUPYTER_RUNTIME_DIR"])

    def ready() -> Host | None:
        for file in runtime.glob("jpserver-*.json"):
            about = json.loads(file.read_text(encoding="utf-8"))
            return Host(about["url"].rstrip("/"), about["token"])
        return None

    with _served(["-m", f"jupyter{program}" if program == "lab" else program], folder, environment, ready) as host:
        yield host


@contextmanager
def marimo(notebook: Path) -> Iterator[Host]:
    """marimo, which runs one notebook as an app."""
    home = notebook.parent.parent / "home-marimo"
    environment, token = own_home(home), secrets.token_hex(16)
    (home / "token").write_text(token, encoding="utf-8")
    (home / "token").chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ready() -> Host | None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return Host(f"http://127.0.0.1:{port}", token, "Bearer")
        return None

    options = ["--headless", "--port", str(port), "--no-sandbox", "--token-password-file", str(home / "token")]
    with _served(["-m", "marimo", "run", *options, str(notebook)], notebook.parent, environment, ready) as host:
        yield host


def own_home(home: Path) -> dict[str, str]:
    """The variables of a process that reads and writes no settings outside of a folder, and reaches only loopback."""
    home.mkdir(parents=True, exist_ok=True)
    places = {
        "HOME": "",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "XDG_CACHE_HOME": "cache",
        "XDG_CONFIG_HOME": "xdg",
        "XDG_DATA_HOME": "share",
        "XDG_STATE_HOME": "state",
    }
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), CLOSED)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MARIMO", "PYTEST"))}
    quiet = {"no_proxy": "127.0.0.1,localhost", "MARIMO_SKIP_UPDATE_CHECK": "1", "OMP_NUM_THREADS": "1"}
    return plain | proxies | quiet | {name: str(home / place) for name, place in places.items()}


@contextmanager
def _served(
    command: list[str], folder: Path, environment: dict[str, str], ready: Callable[[], Host | None]
) -> Iterator[Host]:
    """A server of this Python, from its first answer until the end of the block. Its kernels end with it."""
    log = Path(environment["HOME"]) / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield _waited(lambda: ready() if server.poll() is None else _ended(log))
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def _ended(log: Path) -> Any:
    raise AssertionError(f"the server ended:\n{log.read_text(encoding='utf-8')[-3000:]}")


def _waited(ready: Callable[[], Host | None], seconds: float = 60) -> Host:
    """The first result of `ready`, asked again and again."""
    end = time.monotonic() + seconds
    while (found := ready()) is None:
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.1)
    return found
