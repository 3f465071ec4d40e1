"""The vocabulary of the course: an exercise, the calls that try it, the slips it knows, the sheet typed by hand.

Values only. Nothing here runs a learner's code, compares a number or says a sentence; a folder under `exercises/`
is written in these words, and `grading/` reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from regard.messages import Language, Words

if TYPE_CHECKING:
    import numpy as np  # the list of exercises is read without it

Kind = Literal["code", "bug", "sheet"]
Track = Literal["numpy", "torch"]


# --- what tries a learner's code ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """How to make the instance that is called: arguments of the class, then parameters handed in by name."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    """Parameters by their name in the state dict ("W_q.weight"), so that no random start decides a verdict."""
    training: bool = False


@dataclass(frozen=True)
class Call:
    """One call of the learner's function, or of an instance of the learner's class when `made` is given."""

    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    """What this call tries: a key of task.toml's [cases], or "…" of a general "case-…" in `words`. Empty for a plain
    call."""
    made: Made | None = None
    gradients: bool = False
    """Whether the gradients of sum(out * c) are compared too; c is fixed by the shape of out."""


def call(target: str, *args: Any, about: str = "", **kwargs: Any) -> Call:
    """A plain call, written as it would be typed.

    >>> call("softmax", [0.0, 0.0], axis=-1).kwargs
    {'axis': -1}
    """
    return Call(target, args, kwargs, about)


# --- what is known about wrong answers ---------------------------------------------------------------------


@dataclass(frozen=True)
class Slip:
    """A known wrong answer: the solution with some text replaced, or a text of its own."""

    id: str
    """A key of task.toml's [slips], or one of `diagnosing.GENERAL`."""
    swaps: tuple[tuple[str, str], ...] = ()
    """(old, new): each `old` stands in the solution, and all its places are replaced."""
    source: str | None = None

    def text(self, solution: str) -> str:
        """The wrong program.

        >>> Slip("no-scale", swaps=((" / root", ""),)).text("scores / root")
        'scores'
        """
        text = solution if self.source is None else self.source
        for old, new in self.swaps:
            if old not in text:
                raise ValueError(f"slip {self.id}: {old!r} does not stand in the solution")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the expected one: |got - expected| ≤ atol + rtol · |expected|."""

    rtol: float = 1e-6
    atol: float = 1e-8


TOLERANCES: Mapping[Track, Tolerance] = {"numpy": Tolerance(1e-6, 1e-8), "torch": Tolerance(1e-4, 1e-5)}
"""What is asked where an exercise says nothing: torch exercises are calculated in float32."""


@dataclass(frozen=True)
class Grader:
    """How one exercise tries code; `GRADER` in the grader.py of its folder."""

    cases: Callable[["np.random.Generator"], Sequence[Call]]
    """Fresh calls: small, not square, not saturated, corners included."""
    slips: Sequence[Slip]
    weights_too: bool = False
    """Whether `out` is right beside `(out, weights)`, whichever of them the solution returns."""
    tolerance: Tolerance | None = None
    """None: that of the exercise's track."""


# --- sheets typed by hand ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """One answer on a sheet: a number, a list or matrix of numbers, a word, or a list of words."""

    name: str
    expected: Any
    tolerance: float = 0.0
    """Largest absolute distance of a number."""
    step: str = ""
    """A key of task.toml's [cases]: the step that this answer belongs to."""
    also: tuple[Any, ...] = ()
    """Other answers that are as right as the expected one: a head nearly as good, steps in another order."""
    total: float | None = None
    """What the numbers sum to, where that can be said: 1 for a row of weights."""


@dataclass(frozen=True)
class SheetSlip:
    """Wrong answers that people give: `answers(seed)` holds, by field, what they would type.

    It is told by the first wrong answer of a sheet; fields it does not name are answered rightly.
    """

    id: str
    answers: Callable[[int], Mapping[str, Any]]


@dataclass(frozen=True)
class Sheet:
    """How one answer sheet is made and judged; `SHEET` in the grader.py of its folder."""

    make: Callable[[int, Language], str]
    """The empty sheet as TOML, with `seed = …` in it."""
    fields: Callable[[int], Sequence[Field]]
    slips: Sequence[SheetSlip]
    reveal: Callable[[int, Language], str] | None = None
    """What is shown once the answers are right: the picture that was to be foretold."""
    remark: Callable[[int, str, Any, Language], str | None] | None = None
    """What can be told of a wrong answer that is no known slip, by seed, field and what was typed (of words their
    letters alone, in capitals)."""


# --- an exercise -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue."""

    id: str
    kind: Kind
    track: Track
    lesson: int
    title: Words


@dataclass(frozen=True)
class Exercise(Entry):
    """A row with all that stands in its folder."""

    task: Words
    hints: Mapping[Language, tuple[str, ...]]
    cases: Mapping[str, Words]
    slips: Mapping[str, Words]
    stub: str
    solution: str
    grader: Grader | None
    """None for a sheet."""
    sheet: Sheet | None
    """None for code."""
    alone: frozenset[str] = frozenset()
    """Slips whose sentence says that something else is right ("out is right, but …"): never told beside another."""

    @property
    def tolerance(self) -> Tolerance:
        """What the grader asks, or what its track does."""
        asked = None if self.grader is None else self.grader.tolerance
        return TOLERANCES[self.track] if asked is None else asked
