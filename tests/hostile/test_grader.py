"""The grader against hostile programs, with all restrictions and with some layers missing.

Each program runs through `regard learn check`. There must be a verdict in time, no pass, no process and no file left,
and an unrelated process must survive.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile_programs import programs

from regard.course.catalogue import HOME
from regard.course.grading.process import NUMPY
from regard.course.grading.supervisor import descendants

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform != "linux", reason="kernel restrictions and /proc need Linux"),
]

PROGRAMS = programs()
SOLUTION = HOME / "exercises" / "softmax" / "solution.py"
WITHOUT = Path(__file__).parents[1] / "without_restrictions.py"
LAYERS = ("", "namespaces", "landlock")
STARTING = 20.0
"""Seconds for Python and NumPy to start while other tests run; the program's time limit counts after that."""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.usefixtures("our_orphans", "signals_at_default")
@pytest.mark.parametrize("without", LAYERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_hostile_program_gets_a_verdict_and_leaves_nothing(
    name: str, without: str, tmp_path: Path, victim: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    kept.write_text("kept")
    as_it_was = kept.stat()
    answer = tmp_path / "answer.py"
    text = PROGRAMS[name].replace("VICTIM_FILE", str(kept)).replace("VICTIM", str(victim.pid))
    answer.write_text(text.replace("SOLUTION", str(SOLUTION)), encoding="utf-8")
    before = set(descendants(os.getpid()))
    command = [sys.executable, str(WITHOUT), without, sys.executable, "-m", "regard", "learn", "check", "softmax"]
    env = {**os.environ, "TMPDIR": str(temporary), "REGARD_HOME": str(tmp_path / "home"), "REGARD_LANG": "en"}
    began = time.monotonic()
    done = subprocess.run([*command, str(answer), "--json"], env=env, capture_output=True, timeout=120, check=False)
    took = time.monotonic() - began

    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    verdict = json.loads(done.stdout)
    assert not verdict["passed"]
    assert took < NUMPY.wall + 2 + STARTING
    assert len(done.stdout) < 1_000_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", "".join(map(str, verdict.values())))
    assert list(temporary.iterdir()) == []
    assert set(descendants(os.getpid())) - before == set()
    assert victim.poll() is None
    assert state(victim.pid) == "S"
    assert os.getpriority(os.PRIO_PROCESS, victim.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert kept.read_text() == "kept"
    assert (kept.stat().st_mode, kept.stat().st_mtime_ns) == (as_it_was.st_mode, as_it_was.st_mtime_ns)


def test_there_are_at_least_100_programs() -> None:
    assert len(PROGRAMS) >= 100
