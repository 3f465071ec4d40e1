"""Loading the model and the input text of a command, with notes about spelling, unknown text and lost numbers."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.handmade_view import NAME as HANDMADE
from regard.cli.streams import print_message
from regard.errors import FileError
from regard.messages import Listed, say
from regard.printable import one_line

if TYPE_CHECKING:
    from regard.language import LanguageModel, Seen
    from regard.language.input_text import Note


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
