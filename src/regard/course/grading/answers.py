"""Results of a run: one Answer per call, and an Outcome for the whole run.

The sandbox produces them for the learner's program; this process for the solution and the known mistakes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.course.exercise import Call, Track


@dataclass(frozen=True)
class Answer:
    """The result of one call: a value, an exception, or a fault."""

    value: Any = None
    raised: str = ""
    """Name of the exception's type, or "" if the call returned."""
    message: str = ""
    line: int | None = None
    """Line of the learner's source that raised."""
    mutated: tuple[str, ...] = ()
    """Arguments that the call changed."""
    fault: str = ""
    """A general diagnosis that needs no comparison of numbers: "missing-name", "wrong-type" …"""
    gradients: Mapping[str, Any] | None = None
    """For a call with gradients: by "args.0", "kwargs.mask" or a parameter's name; None for a leaf without gradient."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Placeholders of the fault's message: `name`, `nearest`, `wanted`, `found`; for "refused" `what`."""


@dataclass(frozen=True)
class Outcome:
    """The result of a whole run."""

    answers: tuple[Answer, ...] = ()
    """One per call, in order; fewer if the run ended early."""
    ended: str = ""
    """Why the run ended early: "too-slow", "killed", "raises" …, or "" if it did not."""
    message: str = ""
    line: int | None = None
    printed: str = ""
    raised: str = ""
    """Name of the exception's type if the source could not be loaded."""
    details: Mapping[str, str] = field(default_factory=dict)
    """As in an Answer; for "syntax" `hint` (a message) and `column`."""
    seconds: float = 0.0
    solution_readable: bool = False
    """Whether this system cannot keep native code from reading our own files, including the solutions."""


class Runner(Protocol):
    """A function that runs a program."""

    def __call__(self, source: str, calls: Sequence[Call], track: Track) -> Outcome: ...
