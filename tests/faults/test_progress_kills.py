"""Progress under fire: killed at any moment while it writes, it is whole, and at most the last step is missing.

This file runs itself as the program that writes in a loop; REGARD_FAULTS_KILLS asks for more kills.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from regard.course.progress import Progress, ProgressFile

KILLS = int(os.environ.get("REGARD_FAULTS_KILLS", "20"))


def one_more(progress: Progress) -> Progress:
    return progress.with_work("softmax", progress.work("softmax").checked(passed=False))


def write_for_ever(folder: Path) -> None:
    book = ProgressFile(folder)
    while True:
        done = book.change(one_more).work("softmax").attempts
        os.write(1, done.to_bytes(8, "big"))


def test_progress_survives_every_kill(tmp_path: Path) -> None:
    rng = random.Random(7)
    told: list[str] = []
    reached = 0
    for _ in range(KILLS):
        with subprocess.Popen([sys.executable, __file__, str(tmp_path)], stdout=subprocess.PIPE) as life:
            assert life.stdout is not None
            first = life.stdout.read(8)  # it is up and writing
            time.sleep(rng.uniform(0, 0.03))
            life.send_signal(signal.SIGKILL)
            said = (first + life.stdout.read())[-8:]
        last = int.from_bytes(said, "big")
        found = ProgressFile(tmp_path, told.append).read().work("softmax").attempts
        assert found in (last, last + 1), "what was said to be written is there"
        assert found > reached
        reached = found
    assert not told
    ProgressFile(tmp_path).change(one_more)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")], "and nothing half made"


if __name__ == "__main__":
    write_for_ever(Path(sys.argv[1]))
