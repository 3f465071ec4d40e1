"""What comes back when a program is tried: one Answer a call, and an Outcome for the whole run.

The sandbox gives them for the learner's program, this process for the solution and the slips.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from regard.course.exercise import Call, Track


@dataclass(frozen=True)
class Answer:
    """What one call gave: a value, or an exception, or something that is no value."""

    value: Any = None
    raised: str = ""
    """Name of the exception's type, or "" when the call came back."""
    message: str = ""
    line: int | None = None
    """Line of the learner's text that raised."""
    mutated: tuple[str, ...] = ()
    """Arguments that are no longer what they were."""
    fault: str = ""
    """A general diagnosis that is certain before any number is looked at: "missing-name", "wrong-type" …"""
    gradients: Mapping[str, Any] | None = None
    """For a call with gradients: by "args.0", "kwargs.mask" or a parameter's name; None where nothing flowed."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What the fault's sentence names: `name`, `nearest`, `wanted`, `found`; for "refused" `what`."""


@dataclass(frozen=True)
class Outcome:
    """What a whole run gave."""

    answers: tuple[Answer, ...] = ()
    """One a call, in order; fewer when the run came to an end before."""
    ended: str = ""
    """Why it ended early: "too-slow", "killed", "raises" …, or "" when it did not."""
    message: str = ""
    line: int | None = None
    printed: str = ""
    raised: str = ""
    """Name of the exception's type when the text could not be loaded."""
    details: Mapping[str, str] = field(default_factory=dict)
    """As in an Answer; for "syntax" `hint` (a key of words) and `column`."""
    seconds: float = 0.0
    readable: bool = False
    """Whether this system has nothing that keeps native code from reading our own files, solutions among them."""


class Runner(Protocol):
    """How a program is tried."""

    def __call__(self, source: str, calls: Sequence[Call], track: Track) -> Outcome: ...
