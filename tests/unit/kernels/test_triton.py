"""The tests of the Triton kernels without a GPU, in a process of their own, where Triton interprets them.

Triton decides this when it is imported, and much of PyTorch's compiler imports it: so never in this process.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

GROUPS = 2
"""Processes among which the test files are divided, so that two workers share them."""


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="interpreted already: `pytest tests/unit/kernels/triton`"
)
@pytest.mark.parametrize(
    ("which", "group"),
    [
        *(("not long", group) for group in range(GROUPS)),
        *(pytest.param("long", group, marks=pytest.mark.long) for group in range(GROUPS)),
    ],
)
def test_the_triton_kernels_under_the_interpreter(which: str, group: int) -> None:
    files = sorted((Path(__file__).parent / "triton").glob("test_*.py"), key=lambda path: path.stat().st_size)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", which]
    command += map(str, files[group::GROUPS])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
