"""What every test run shares: Hypothesis profiles, and the language that errors speak.

Shared code is not here but in plain modules beside this file (`strategies`, `cases`, `tolerances`): pyproject.toml
puts `tests` on pytest's path, which works alike under xdist, `--import-mode=importlib` and `python -m pytest`.
"""

import ctypes
import os
import random
import signal
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("REGARD_HYPOTHESIS", "quick")

settings.register_profile(
    "always",
    deadline=None,  # two shared cores: slowness says nothing about being right
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
# Quick runs are the same everywhere and every time; nightly ones look further, from a seed that is printed.
settings.register_profile("quick", settings.get_profile("always"), max_examples=50, derandomize=True)
settings.register_profile("nightly", settings.get_profile("always"), max_examples=1000)
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the nightly seed here, before Hypothesis asks for it, so that xdist's workers get the same."""
    if PROFILE != "quick" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def _seed_line(config: pytest.Config) -> str:
    seed = config.getoption("--hypothesis-seed")
    again = f"REGARD_HYPOTHESIS={PROFILE} and --hypothesis-seed={seed} repeat it" if seed else "the same every time"
    return f"hypothesis examples: {PROFILE} profile, {settings().max_examples} each; {again}"


def pytest_report_header(config: pytest.Config) -> str:
    return _seed_line(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The seed once more, where -q leaves the header out and a failure is read from the end."""
    if PROFILE != "quick":
        terminalreporter.write_line(_seed_line(config))


@pytest.fixture(scope="session", autouse=True)
def one_thread_each() -> None:
    """Beside other workers, torch's threads only get in each other's way."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def english() -> Iterator[None]:
    """Errors speak English for the whole run, subprocesses included, whatever the machine's language."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_LANG", "en")
        yield


@pytest.fixture
def signals_at_default() -> Iterator[None]:
    """Whoever has started the tests: background jobs ignore Ctrl-C, those of nohup a hangup; so do their children."""
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ending}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def our_orphans() -> Iterator[None]:
    """Processes whose parents die become children of this one, so that none gets away unseen. Linux only."""
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)
    yield
    libc.prctl(36, 0, 0, 0, 0)


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with what is tested, in a group of its own: it must live on."""
    sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield sleeper
    sleeper.kill()
    sleeper.wait()
