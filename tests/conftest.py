"""Configuration of all test runs: Hypothesis profiles, the language of errors, and shared fixtures.

Shared code is in plain modules next to this file (`strategies`, `cases`, `tolerances`): pyproject.toml puts `tests` on
pytest's path, which works under xdist, `--import-mode=importlib` and `python -m pytest`.
"""

import ctypes
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Bytecode is kept also where the environment says otherwise: a run starts hundreds of Python processes, and each would
# compile the package and rewrite the tests again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if "PYTEST_XDIST_WORKER" in os.environ:
    # One thread per worker, before NumPy and torch are imported: the workers keep the cores busy, and threads of BLAS
    # that wait for each other use processor time. Processes that tests start inherit it.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

PROFILE = os.environ.get("REGARD_HYPOTHESIS", "quick")

settings.register_profile(
    "always",
    deadline=None,  # on two shared cores, a slow example is not an error
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# Quick runs use the same examples every time; nightly runs try more, from a seed that is printed.
settings.register_profile("quick", settings.get_profile("always"), max_examples=30, derandomize=True)
settings.register_profile("nightly", settings.get_profile("always"), max_examples=1000)
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the nightly seed here, before Hypothesis reads it, so that all xdist workers get the same."""
    if PROFILE != "quick" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """One worker more than there are cores: for a quarter of the time, a worker waits for a browser or a process."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


MARKED_FOLDERS = {Path(__file__).parent / mark: mark for mark in ("gpu", "hostile", "web")}
"""Folders in which every file has the mark of the folder's name."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders that `-m "not …"` deselects as a whole: their files build large data when they are imported."""
    mark = MARKED_FOLDERS.get(collection_path)
    return True if mark and f"not {mark}" in config.option.markexpr else None


def _seed_line(config: pytest.Config) -> str:
    seed = config.getoption("--hypothesis-seed")
    repeat = f"REGARD_HYPOTHESIS={PROFILE} and --hypothesis-seed={seed} repeat it" if seed else "the same every time"
    return f"hypothesis examples: {PROFILE} profile, {settings().max_examples} each; {repeat}"


def pytest_report_header(config: pytest.Config) -> str:
    return _seed_line(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seed again at the end, because -q omits the header."""
    if PROFILE != "quick":
        terminalreporter.write_line(_seed_line(config))


@pytest.fixture(scope="session", autouse=True)
def english() -> Iterator[None]:
    """Errors are in English for the whole run, subprocesses included, whatever the machine's language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_LANG", "en")
        yield


@pytest.fixture
def signals_at_default() -> Iterator[None]:
    """Reset signal handlers: background jobs ignore SIGINT and SIGQUIT, nohup ignores SIGHUP; children inherit that."""
    ending = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ending}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def our_orphans() -> Iterator[None]:
    """Make this process the parent of orphaned processes, so that none is missed. Linux only."""
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)
    yield
    libc.prctl(36, 0, 0, 0, 0)


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """An unrelated process in its own group, which must survive the test."""
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield sleeper
    sleeper.kill()
    sleeper.wait()
