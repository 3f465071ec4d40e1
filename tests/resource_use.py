"""Reads a file in a separate process, and measures its processor time and memory."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """The message, processor time in seconds, and peak memory in megabytes, of the process and its children."""

    message: str
    seconds: float
    megabytes: float


_PROGRAM = """
import resource, sys
path = sys.argv[1]
{imports}
from regard.errors import RegardError
start = resource.getrusage(resource.RUSAGE_SELF)
try:
    {action}
    message = "used"
except RegardError as error:
    message = error.text("en")
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = sum(each.ru_utime + each.ru_stime for each in used) - start.ru_utime - start.ru_stime
print(seconds, (max(each.ru_maxrss for each in used) - start.ru_maxrss) / 1024, message)
"""


def read_limited(imports: str, action: str, path: Path, timeout: float = 60) -> Outcome:
    """Run `action`, a line of Python that uses `path`, after `imports`. Any error but a RegardError fails the test."""
    program = _PROGRAM.format(imports=imports, action=action)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, megabytes, message = done.stdout.split(" ", 2)
    return Outcome(message.strip(), float(seconds), float(megabytes))


def assert_refused(found: Outcome, path: Path) -> None:
    """Assert a message with the path, within 5 s, and with no more memory than the file's size plus 256 MB."""
    assert str(path) in found.message, found.message
    assert found.seconds < 5, found
    assert found.megabytes < path.stat().st_size / 2**20 + 256, found
