"""Fixtures for fault tests: a setup for each test file, and a run that was interrupted halfway."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.fault_setup import Setup, newest
from faults.fork_server import RECIPE, fork_server, wait_until


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # unlike a power failure, a kill needs no real disk
    with tempfile.TemporaryDirectory(dir=memory) as name, fork_server(Path(name)) as server:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE)
        reference = Setup(folder, server, folder / "reference", 0.0)
        assert reference.train(folder / "first").code == 0  # a first run, for imports and caches
        began = time.monotonic()
        assert reference.train(reference.reference).code == 0
        yield reference._replace(seconds=time.monotonic() - began)


@pytest.fixture
def out(setup: Setup) -> Iterator[Path]:
    path = setup.folder / f"run-{setup.server.count}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def halfway(setup: Setup) -> Path:
    """A run that was interrupted in the middle."""
    out = setup.folder / "halfway"
    child = setup.start(out, fault="slow")
    wait_until(lambda: (out / "checkpoints" / "step-00000010").exists())
    child.kill(signal.SIGTERM)
    assert child.end().code == 130
    assert 10 < newest(out) < 15
    return out


@pytest.fixture
def half(halfway: Path, out: Path) -> Path:
    """A copy of the interrupted run, to be damaged."""
    shutil.copytree(halfway, out)
    return out
