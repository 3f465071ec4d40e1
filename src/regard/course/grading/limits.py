"""How much time, memory, output and files a learner's program may use, and which of these hold on this system.

They protect from accidents: a loop without end, a list that grows, a print that floods. They are no protection from
somebody who means harm; programs of strangers need a container.
"""

import importlib.util
import sys
from dataclasses import dataclass
from typing import Literal

Hold = Literal["wall", "cpu", "memory", "output", "file", "processes", "network"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one run; time is counted from the moment the libraries are loaded."""

    wall: float = 5.0
    """Seconds by the clock."""
    cpu: float = 5.0
    """Seconds of calculation, which threads use up together; told apart from waiting."""
    start: float = 60.0
    """Seconds to load the libraries, which a slow disk may need; the learner's text is not read yet."""
    memory: int = 1 << 30
    """Bytes on top of what the libraries take; room enough to import torch where it is not needed."""
    output: int = 200_000
    """Bytes printed."""
    answers: int = 32 << 20
    """Bytes sent back as answers, all together."""
    file: int = 4 << 20
    """Bytes of one file in the folder of the run, and of all of them together."""
    files: int = 100
    """How often files may be made or changed there."""


NUMPY = Limits()
TORCH = Limits(wall=10.0, cpu=10.0)


def limits_for(track: str) -> Limits:
    """What is usual for a track.

    >>> limits_for("torch").wall
    10.0
    """
    return TORCH if track == "torch" else NUMPY


def holding() -> tuple[Hold, ...]:
    """The limits that this system enforces. Clock and output always; Windows has no resource limits, macOS none on
    memory, and only Linux lets processes and the network be refused for native code too."""
    found: list[Hold] = ["wall", "output"]
    if importlib.util.find_spec("resource") is not None:
        found += ["cpu", "file"]
    if sys.platform == "linux":
        found += ["memory", "processes", "network"]
    return tuple(found)
