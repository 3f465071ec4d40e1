"""Data classes of the course: an exercise, its test calls, its known mistakes, answer sheets, and results of a run.

Values only: this module runs no learner code, compares no numbers and formats no messages. The folders under
`exercises/` define these values, and `grading/` reads them.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from regard.messages import Language, Message

if TYPE_CHECKING:
    import numpy as np  # the list of exercises is read without it

OWN = "own."
"""The start of a key in the progress file, for exercises that are not in the catalogue."""
Kind = Literal["code", "bug", "sheet"]
Track = Literal["numpy", "torch"]


# --- test calls --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """How to construct the instance to call: arguments of the class, then parameters set by name."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    """Parameters by their name in the state dict ("W_q.weight"), so that verdicts do not depend on random values."""
    training: bool = False


@dataclass(frozen=True)
class Call:
    """One call of the learner's function, or of an instance of the learner's class when `instance` is given."""

    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    """What this call tests: a key of task.toml's [cases], or "…" of a general "case-…" message. Empty for a plain
    call."""
    instance: Instance | None = None
    gradients: bool = False
    """Whether to compare the gradients of sum(out * c) too; c depends only on the shape of out."""


def call(target: str, *args: Any, about: str = "", **kwargs: Any) -> Call:
    """A plain call, written like the call itself.

    >>> call("softmax", [0.0, 0.0], axis=-1).kwargs
    {'axis': -1}
    """
    return Call(target, args, kwargs, about)


# --- known mistakes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """A known wrong program: the solution with some text replaced, or a separate source."""

    id: str
    """A key of task.toml's [mistakes], or one of `diagnosis.GENERAL`."""
    swaps: tuple[tuple[str, str], ...] = ()
    """(old, new): each `old` occurs in the solution, and every occurrence is replaced."""
    source: str | None = None

    def text(self, solution: str) -> str:
        """The wrong program.

        >>> Mistake("no-scale", swaps=((" / root", ""),)).text("scores / root")
        'scores'
        """
        text = solution if self.source is None else self.source
        for old, new in self.swaps:
            if old not in text:
                raise ValueError(f"mistake {self.id}: {old!r} is not in the solution")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of a number: |got - expected| ≤ atol + rtol · |expected|."""

    rtol: float = 1e-6
    atol: float = 1e-8


TOLERANCES: Mapping[Track, Tolerance] = {"numpy": Tolerance(1e-6, 1e-8), "torch": Tolerance(1e-4, 1e-5)}
"""Defaults for exercises without a tolerance of their own: torch exercises are computed in float32."""


@dataclass(frozen=True)
class Grader:
    """How one coding exercise is tested; `GRADER` in the grader.py of its folder."""

    cases: Callable[["np.random.Generator"], Sequence[Call]]
    """Fresh calls: small, not square, softmax not saturated, edge cases included."""
    mistakes: Sequence[Mistake]
    weights_optional: bool = False
    """Whether both `out` and `(out, weights)` are accepted, whichever of them the solution returns."""
    tolerance: Tolerance | None = None
    """None: that of the exercise's track."""


# --- answer sheets -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """One answer on an answer sheet: a number, a list or matrix of numbers, a word, or a list of words."""

    name: str
    expected: Any
    tolerance: float = 0.0
    """Largest allowed absolute error of a number."""
    step: str = ""
    """A key of task.toml's [cases]: the step this answer belongs to."""
    alternatives: tuple[Any, ...] = ()
    """Other accepted answers: a head nearly as good, steps in another order."""
    total: float | None = None
    """The sum that the numbers must have, if any: 1 for a row of weights."""


@dataclass(frozen=True)
class SheetMistake:
    """A common mistake on an answer sheet: `answers(seed)` holds the resulting answers, by field.

    It is recognised by the first wrong answer of a sheet; fields it does not name are answered correctly.
    """

    id: str
    answers: Callable[[int], Mapping[str, Any]]


@dataclass(frozen=True)
class Sheet:
    """How one answer sheet is created and graded; `SHEET` in the grader.py of its folder."""

    make: Callable[[int, Language], str]
    """The empty sheet as TOML, with `seed = …` in it."""
    fields: Callable[[int], Sequence[Field]]
    mistakes: Sequence[SheetMistake]
    reveal: Callable[[int, Language], str] | None = None
    """What to show once all answers are right: the picture to predict."""
    remark: Callable[[int, str, Any, Language], str | None] | None = None
    """A remark on a wrong answer that matches no known mistake, from the seed, the field and the typed answer (of
    words, only the letters in upper case)."""


# --- an exercise -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue."""

    id: str
    kind: Kind
    track: Track
    lesson: int
    title: Message


@dataclass(frozen=True)
class Exercise(Entry):
    """An entry with the contents of its folder."""

    task: Message
    hints: Mapping[Language, tuple[str, ...]]
    cases: Mapping[str, Message]
    mistakes: Mapping[str, Message]
    stub: str
    solution: str
    grader: Grader | None
    """None for a sheet."""
    sheet: Sheet | None
    """None for code."""
    exclusive: frozenset[str] = frozenset()
    """Mistakes whose message says that the rest is right ("out is right, but …"): never reported with another one."""
    folder: str | None = None
    """Where an exercise of one's own was loaded from, as the user named it; None for those of the course."""

    @property
    def key(self) -> str:
        """The name in the progress file. Exercises of one's own never count as one of the course."""
        return self.id if self.folder is None else f"{OWN}{self.id}"

    @property
    def argument(self) -> str:
        """What to type for this exercise after a command."""
        return self.id if self.folder is None else shlex.quote(self.folder)

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance of the grader, or the default of the track."""
        own = None if self.grader is None else self.grader.tolerance
        return TOLERANCES[self.track] if own is None else own


def filled_sheet(sheet: Sheet, seed: int, changes: Mapping[str, Any] | None = None) -> str:
    """All fields of a sheet with the right answers, or those of `changes`, as TOML."""
    answers = {field.name: field.expected for field in sheet.fields(seed)} | dict(changes or {})
    return "\n".join([f"seed = {seed}", *(f"{name} = {as_toml(value)}" for name, value in answers.items())])


def as_toml(value: Any) -> str:
    """A value as TOML; numbers with six decimals, more than a sheet requires.

    >>> as_toml([[0.5, 2 / 3], [1, 0]]), as_toml("softmax")
    ('[[0.5, 0.666667], [1, 0]]', '"softmax"')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(round(value, 6))
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- results of a run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallResult:
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
class RunResult:
    """The result of a whole run."""

    answers: tuple[CallResult, ...] = ()
    """One per call, in order; fewer if the run ended early."""
    ended: str = ""
    """Why the run ended early: "too-slow", "killed", "raises" …, or "" if it did not."""
    message: str = ""
    line: int | None = None
    printed: str = ""
    raised: str = ""
    """Name of the exception's type if the source could not be loaded."""
    details: Mapping[str, str] = field(default_factory=dict)
    """As in a CallResult; for "syntax" `hint` (a message) and `column`."""
    seconds: float = 0.0
    repeated: tuple[CallResult, ...] = ()
    """The answers to one call made again, if that was asked for; fewer if the program ended meanwhile."""
    solution_readable: bool = False
    """Whether this system cannot keep native code from reading our own files, including the solutions."""


Repeat = Callable[[Sequence[CallResult]], int | None]
"""From all answers, the place of the call to make again; None for none. May wait for the expected answers."""


class Runner(Protocol):
    """A function that runs a program, and then makes one of the calls again if `repeat` chooses one."""

    def __call__(
        self, source: str, calls: Sequence[Call], track: Track, *, repeat: Repeat | None = None
    ) -> RunResult: ...
