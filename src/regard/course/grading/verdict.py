"""What a check says: which tests passed, what was expected, what came, where, and the likely slip.

A value with two readings: `as_json` for programs and `text` for people. It decides nothing; `judging` does.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.messages import Language, say, speaking
from regard.printable import printable

SHOWN = 2000
"""How many characters of what the learner printed are shown."""


def plain(text: str) -> str:
    r"""Text that came from a learner's program, with everything that could steer a terminal shown as a sign.

    >>> plain("\x1b[31mred\x07")
    '␛[31mred␇'
    """
    return printable(text)


@dataclass(frozen=True)
class Test:
    """One call, and how it went; everything that can be shown is text already."""

    __test__ = False  # nothing for pytest to collect
    name: str
    passed: bool
    call: str = ""
    expected: str = ""
    got: str = ""
    where: str = ""
    message: str = ""
    allowed: str = ""
    """How far off a number may be, where it was a number that is not right."""


@dataclass(frozen=True)
class Verdict:
    """How a learner's answer fared. `str()` of it is what a learner reads."""

    id: str
    passed: bool
    slip: str | None = None
    """The id of the slip, the exercise's own or a general one; None when all is right."""
    diagnosis: str | None = None
    """The same as a sentence."""
    tests: tuple[Test, ...] = ()
    printed: str = ""
    seed: int = 0
    seconds: float = 0.0
    title: str = ""
    revealed: str = ""
    """What a sheet shows once all of it is right."""
    language: Language = field(default="en", kw_only=True)
    is_sheet: bool = field(default=False, kw_only=True)
    """Whether the tests are answers that were typed, rather than calls."""
    readable: bool = field(default=False, kw_only=True)
    """Whether this system could not keep the solutions from the program: a pass is then the learner's word."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, in the order a reader asks for them."""
        return {
            "id": self.id,
            "passed": self.passed,
            "diagnosis": self.diagnosis,
            "slip": self.slip,
            "tests": [asdict(test) for test in self.tests],
            "seed": self.seed,
            "printed": self.printed,
            **({"readable": True} if self.readable else {}),
        }

    def text(self, file: str = "") -> str:
        """The lines a learner reads, in the language it was judged in; `file` is where the answer stands, if in one."""
        with speaking(self.language):
            not_run = say("verdict-not-run")
            lines = [self._head()]
            ran = any(test.message != not_run for test in self.tests)
            if ran:
                lines += [f"  {'✓' if test.passed else '✗'} {test.name}" for test in self.tests]
                failing = next((test for test in self.tests if not test.passed), None)
                lines += [] if failing is None else ["", *self._close_up(failing)]
            if self.diagnosis:
                lines += ["", say("verdict-slip", what=self.diagnosis)]
            if self.revealed:
                lines += ["", self.revealed]
            if self.passed and self.readable:
                lines += ["", say("verdict-readable")]
            if self.printed.strip():
                lines += ["", say("verdict-printed"), *_indented(_shortened(self.printed))]
            if not self.passed:
                lines += ["", say("verdict-next", id=self.id)]
            if not self.passed and ran and not self.is_sheet:  # which carries its seed itself
                lines += [say("verdict-again" if file else "verdict-again-here", id=self.id, file=file, seed=self.seed)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """A notebook that shows the returned verdict has just printed it: one line is enough."""
        printer.text(self._head())

    def _close_up(self, test: Test) -> list[str]:
        """One test in full."""
        lines = [say(f"{self._spoken_of}-first", name=test.name)]
        shown = (
            {"sheet-got": test.got}
            if self.is_sheet
            else {"verdict-call": test.call, "verdict-expected": test.expected, "verdict-got": test.got}
        )
        for key, text in shown.items():
            if text:
                lines += [f"  {say(key)}", *_indented(text, 4)]
        lines += [f"  {test.message}"] * (bool(test.message) and test.message != self.diagnosis)
        lines += [f"  {test.allowed}"] * bool(test.allowed)
        return lines

    @property
    def _spoken_of(self) -> str:
        """Which sentences fit: those about tests, or those about a sheet's answers."""
        return "sheet" if self.is_sheet else "verdict"

    def _head(self) -> str:
        passed, count = sum(test.passed for test in self.tests), len(self.tests)
        with speaking(self.language):
            if self.passed:
                return "✓ " + say(f"{self._spoken_of}-passed", title=self.title, count=count)
            if all(test.message == say("verdict-not-run") for test in self.tests):
                return "✗ " + say(f"{self._spoken_of}-nothing-run", title=self.title)
            return "✗ " + say(f"{self._spoken_of}-failed", title=self.title, passed=passed, count=count)


def _indented(text: str, by: int = 2) -> list[str]:
    return [" " * by + line for line in text.splitlines()]


def _shortened(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    return text[:SHOWN] + "\n" + say("verdict-printed-more", count=len(text) - SHOWN)
