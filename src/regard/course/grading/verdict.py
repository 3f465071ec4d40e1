"""The verdict of a check: passed tests, expected and actual results, the place of the difference, the likely mistake.

Two formats: `as_json` for programs, `text` for people. The grading itself is in `grader`.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.messages import Language, printable, say, use_language

SHOWN = 2000
"""Longest part of the learner's output to show, in characters."""


def plain(text: str) -> str:
    r"""Text from a learner's program, with terminal control characters replaced by visible symbols.

    >>> plain("\x1b[31mred\x07")
    '␛[31mred␇'
    """
    return printable(text)


@dataclass(frozen=True)
class Test:
    """One call and its result; all values are already text."""

    __test__ = False  # nothing for pytest to collect
    name: str
    passed: bool
    call: str = ""
    expected: str = ""
    got: str = ""
    where: str = ""
    message: str = ""
    allowed: str = ""
    """The allowed error, if a number is wrong."""


@dataclass(frozen=True)
class Verdict:
    """The result of grading an answer. `str()` gives the text for the learner."""

    id: str
    passed: bool
    mistake: str | None = None
    """The id of the mistake, specific or general; None if everything is right."""
    diagnosis: str | None = None
    """The message for that mistake."""
    tests: tuple[Test, ...] = ()
    printed: str = ""
    seed: int = 0
    seconds: float = 0.0
    title: str = ""
    revealed: str = ""
    """What an answer sheet shows once everything is right."""
    language: Language = field(default="en", kw_only=True)
    is_sheet: bool = field(default=False, kw_only=True)
    """Whether the tests are typed answers instead of calls."""
    solution_readable: bool = field(default=False, kw_only=True)
    """Whether the program could have read the solution on this system, so that a pass proves nothing."""

    argument: str = field(default="", kw_only=True)
    """What to type for the exercise after a command, if that is not its id."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON, the most important first."""
        return {
            "id": self.id,
            "passed": self.passed,
            "diagnosis": self.diagnosis,
            "mistake": self.mistake,
            "tests": [asdict(test) for test in self.tests],
            "seed": self.seed,
            "printed": self.printed,
            **({"readable": True} if self.solution_readable else {}),
        }

    def text(self, file: str = "") -> str:
        """The text for a learner, in the language of the grading; `file` is the path of the answer, if any."""
        with use_language(self.language):
            not_run = say("verdict-not-run")
            lines = [self._head()]
            ran = any(test.message != not_run for test in self.tests)
            if ran:
                lines += [f"  {'✓' if test.passed else '✗'} {test.name}" for test in self.tests]
                failing = next((test for test in self.tests if not test.passed), None)
                lines += [] if failing is None else ["", *self._details(failing)]
            if self.diagnosis:
                lines += ["", say("verdict-mistake", what=self.diagnosis)]
            if self.revealed:
                lines += ["", self.revealed]
            if self.passed and self.solution_readable:
                lines += ["", say("verdict-readable")]
            if self.printed.strip():
                lines += ["", say("verdict-printed"), *_indented(_shortened(self.printed))]
            if not self.passed:
                lines += ["", say("verdict-next", id=self.argument or self.id)]
            if not self.passed and ran and not self.is_sheet:  # a sheet contains its seed
                again = "verdict-again" if file else "verdict-again-here"
                lines += [say(again, id=self.argument or self.id, file=file, seed=self.seed)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """One line: in a notebook, `check` has just printed the whole verdict."""
        printer.text(self._head())

    def _details(self, test: Test) -> list[str]:
        """The details of one test."""
        lines = [say(f"{self._message_prefix}-first", name=test.name)]
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
    def _message_prefix(self) -> str:
        """Prefix of the message keys: "verdict" for tests, "sheet" for answers on a sheet."""
        return "sheet" if self.is_sheet else "verdict"

    def _head(self) -> str:
        passed, count = sum(test.passed for test in self.tests), len(self.tests)
        with use_language(self.language):
            if self.passed:
                return "✓ " + say(f"{self._message_prefix}-passed", title=self.title, count=count)
            if all(test.message == say("verdict-not-run") for test in self.tests):
                return "✗ " + say(f"{self._message_prefix}-nothing-run", title=self.title)
            return "✗ " + say(f"{self._message_prefix}-failed", title=self.title, passed=passed, count=count)


def _indented(text: str, by: int = 2) -> list[str]:
    return [" " * by + line for line in text.splitlines()]


def _shortened(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    return text[:SHOWN] + "\n" + say("verdict-printed-more", count=len(text) - SHOWN)
