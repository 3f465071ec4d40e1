"""A file read in a process of its own: what was said of it, and the processor time and memory that it took."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """`seconds` of processor time and `megabytes` at most, of the process and its children."""

    said: str
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
    said = "used"
except RegardError as error:
    said = error.text("en")
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = sum(each.ru_utime + each.ru_stime for each in used) - start.ru_utime - start.ru_stime
print(seconds, (max(each.ru_maxrss for each in used) - start.ru_maxrss) / 1024, said)
"""


def read_limited(imports: str, action: str, path: Path, timeout: float = 60) -> Outcome:
    """Do `action`, a line of Python that has `path`, after `imports`. Any error but ours is an AssertionError."""
    program = _PROGRAM.format(imports=imports, action=action)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, megabytes, said = done.stdout.split(" ", 2)
    return Outcome(said.strip(), float(seconds), float(megabytes))


def assert_refused(found: Outcome, path: Path) -> None:
    """With its path, within 5 s, in no more memory than the file has and 256 MB."""
    assert str(path) in found.said, found.said
    assert found.seconds < 5, found
    assert found.megabytes < path.stat().st_size / 2**20 + 256, found
