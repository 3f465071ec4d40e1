"""A stage for runs under fire, one for each file of tests, and a run that was interrupted halfway."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.lives import RECIPE, living, until
from faults.stage import Stage, newest


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a kill, unlike a power cut, asks nothing of the disk
    with tempfile.TemporaryDirectory(dir=memory) as name, living(Path(name)) as lives:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE)
        whole = Stage(folder, lives, folder / "whole", 0.0)
        assert whole.train(folder / "first").code == 0  # while it is still learning to walk
        began = time.monotonic()
        assert whole.train(whole.whole).code == 0
        yield whole._replace(seconds=time.monotonic() - began)


@pytest.fixture
def out(stage: Stage) -> Iterator[Path]:
    path = stage.folder / f"run-{stage.lives.count}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def halfway(stage: Stage) -> Path:
    """A run that was interrupted somewhere in the middle."""
    out = stage.folder / "halfway"
    life = stage.start(out, fault="slow")
    until(lambda: (out / "checkpoints" / "step-00000010").exists())
    life.kill(signal.SIGTERM)
    assert life.end().code == 130
    assert 10 < newest(out) < 15
    return out


@pytest.fixture
def half(halfway: Path, out: Path) -> Path:
    """The same once more, to be spoilt."""
    shutil.copytree(halfway, out)
    return out
