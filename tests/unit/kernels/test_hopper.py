"""The tests of the Hopper kernels without a GPU, in a process of their own, where Triton only compiles.

Triton must not be imported in this process, nor interpret in that one.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
@pytest.mark.long  # compiles every kernel, forty seconds each
@pytest.mark.parametrize("which", ["not long", "long"])
def test_hopper_kernels_compile_and_schedule_every_tile(which: str, tmp_path: Path) -> None:
    file = Path(__file__).with_name("hopper_alone.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", which, str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_CACHE_DIR": str(tmp_path)}
    environment["TRITON_MOCK_PTX_VERSION"] = "8.6"  # Triton would otherwise ask the assembler, which may be missing
    environment["TRITON_DEFAULT_FP_FUSION"] = "1"  # the default; Triton 3.9 warns if it is not set
    for name in ("TRITON_INTERPRET", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
