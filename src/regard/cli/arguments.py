"""Arguments that several commands share: numbers, the model, and the input text with its notes.

Notes are about spelling, unknown text and lost numbers.
"""

import math
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import print_message
from regard.errors import ArgumentError, FileError
from regard.messages import Listed, one_line, say

if TYPE_CHECKING:
    from regard.language import LanguageModel, Seen
    from regard.language.input_text import Note

MOST_BEAMS = 256


def is_count(text: str) -> bool:
    """Whether it is a whole number of at most 18 digits: `int` refuses thousands of digits.

    >>> is_count("12"), is_count("-1"), is_count("9" * 5000)
    (True, False, False)
    """
    return text.isdecimal() and len(text) <= 18


def whole_number(option: str, text: str, least: int) -> int:
    """A whole number of at least `least`.

    >>> whole_number("--beams", "5", least=1)
    5
    """
    if not is_count(text) or int(text) < least:
        raise ArgumentError("count-wanted", name=option, least=least, value=text)
    return int(text)


def beam_count(text: str) -> int:
    """The value of --beams."""
    beams = whole_number("--beams", text, least=1)
    if beams > MOST_BEAMS:
        raise ArgumentError("translate-beams", found=text, most=MOST_BEAMS)
    return beams


def number_from_zero(option: str, text: str) -> float:
    """A finite number of at least 0.

    >>> number_from_zero("--temperature", "0.8"), number_from_zero("--temperature", "0")
    (0.8, 0.0)
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ArgumentError("cli-number-from-zero", option=option, found=text)
    return value


HANDMADE = "handmade"
"""The name of the layer whose weights were set by hand."""
BackendOption = Annotated[
    str | None, typer.Option("--backend", metavar="metavar-backend", help="help-backend", show_default=False)
]


WeightsOption = Annotated[
    str | None, typer.Option("--weights", metavar="metavar-weights", help="help-weights", show_default=False)
]


def open_model(name: str, backend: str | None = None, weights: str | None = None) -> "LanguageModel":
    """The model of that name; says when the package transformers computes it, and why."""
    from regard.language.loading import load

    model = load(name, backend=backend, weights=weights)  # type: ignore[arg-type]  # `load` checks the names
    if model.backend.name == "transformers" and backend is None:
        print_message(say("cli-by-transformers", reason=model.backend.reason))
    return model


def load_model(name: str, backend: str | None = None) -> "LanguageModel":
    """The same; the error for an unknown name also lists `handmade`."""
    from regard.language.loading import BUNDLED

    try:
        return open_model(name, backend)
    except FileError as error:
        if error.key != "language-no-folder":
            raise
        raise FileError(error.key, **error.values | {"names": Listed((*BUNDLED, HANDMADE))}) from error


def see_text(model: "LanguageModel", text: str, output: str | None = None) -> "Seen":
    """`model.see` with its notes printed as messages instead of warnings."""
    from regard.language.input_text import InputWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        seen = model.see(text, output=output)
    print_notes(model, seen.notes)
    return seen


def print_notes(model: "LanguageModel", notes: "Iterable[Note]") -> None:
    """Print the notes about a text."""
    for note in notes:
        print_message(_message(model, note))


def notes_as_json(notes: "Iterable[Note]") -> dict[str, list[str]]:
    """The notes for --json: what the model does not know, and numbers missing in the translation."""
    found: dict[str, list[str]] = {"unknown": [], "lost_numbers": []}
    for note in notes:
        if note.kind != "read-as":
            found["lost_numbers" if note.kind == "text-numbers" else "unknown"] += note.parts
    return found


class LineNotes:
    """Notes about many lines: the first of each kind, and their number."""

    def __init__(self, model: "LanguageModel") -> None:
        self._model = model
        self._first: dict[str, tuple[int, str]] = {}
        self._count: dict[str, int] = {}

    def add(self, number: int, notes: "Iterable[Note]") -> None:
        """Add the notes about a line."""
        for note in notes:
            self._first.setdefault(note.kind, (number, _message(self._model, note)))
            self._count[note.kind] = self._count.get(note.kind, 0) + 1

    def print_all(self) -> None:
        """Print the notes after the last line."""
        for kind, (number, reason) in self._first.items():
            count = self._count[kind]
            if count == 1:
                print_message(say("translate-line", number=number, reason=reason))
            else:
                print_message(say("translate-lines", number=number, reason=reason, count=count))


def _message(model: "LanguageModel", note: "Note") -> str:
    from regard.language.input_text import note_message

    return one_line(note_message(model, note))
