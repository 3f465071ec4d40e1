"""Odd arguments and Ctrl-C at any time, in large numbers: `make test-hostile`."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from odd_arguments import odd_commands, run_commands, violations

from regard.cli.application import application

pytestmark = [pytest.mark.hostile, pytest.mark.usefixtures("signals_at_default")]
COUNT = int(os.environ.get("REGARD_HOSTILE_COMMANDS", "600"))
KILLS = int(os.environ.get("REGARD_HOSTILE_KILLS", "200"))


@pytest.mark.parametrize("seed", range(4))
def test_every_command_handles_odd_arguments(seed: int, tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    assert not violations(run_commands(list(odd_commands(application(), seed, COUNT // 4)), place))


@pytest.mark.parametrize("program", [[sys.executable, "-m", "regard"], [str(Path(sys.executable).with_name("regard"))]])
def test_ctrl_c_in_the_first_half_second(program: list[str]) -> None:
    """Before regard starts, Python itself may print a traceback, but none with a file of regard."""
    rng = random.Random(0)
    for _ in range(KILLS):
        command = [*program, *rng.choice([["explain"], ["translate", "hello"], ["doctor"], ["train"], ["learn"]])]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.5))
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        ours = [line for line in err.decode().splitlines() if "/regard/" in line and "/regard/cli/__init__" not in line]
        if "Traceback" in err.decode() or "Exception ignored" in err.decode():
            assert not ours, err.decode()
        else:
            assert running.returncode in (0, 130, -signal.SIGINT), (running.returncode, err.decode())
