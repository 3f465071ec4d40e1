"""Course progress after kills at any moment of a write: the file is complete, and at most the last change is missing.

This file runs itself as the program that writes in a loop; REGARD_FAULTS_KILLS sets the number of kills.
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
    warnings: list[str] = []
    reached = 0
    for _ in range(KILLS):
        with subprocess.Popen([sys.executable, __file__, str(tmp_path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = process.stdout.read(8)  # it has started to write
            time.sleep(rng.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            message = (first + process.stdout.read())[-8:]
        last = int.from_bytes(message, "big")
        found = ProgressFile(tmp_path, warnings.append).read().work("softmax").attempts
        assert found in (last, last + 1), "every reported write is there"
        assert found > reached
        reached = found
    assert not warnings
    ProgressFile(tmp_path).change(one_more)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")], "no partial file is left"


if __name__ == "__main__":
    write_for_ever(Path(sys.argv[1]))
