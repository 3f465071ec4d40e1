"""A model that reads, and what is told about it: a text spelled otherwise, and what the model does not know."""

from typing import TYPE_CHECKING

from regard.cli.handmade_view import NAME as HANDMADE
from regard.cli.streams import talk
from regard.errors import FileError
from regard.messages import Listed, say
from regard.printable import one_line

if TYPE_CHECKING:
    from regard.language import LanguageModel


NOTHING_UNKNOWN: dict[str, list[str]] = {"unknown": [], "lost_numbers": []}
"""What `reading_as_json` says of a text that was read as it stands."""


def load_reader(name: str) -> "LanguageModel":
    """The model to be looked at; where there is none, the one built by hand is named among those that there are."""
    from regard.language import BUNDLED, load

    try:
        return load(name)
    except FileError as error:
        if error.key != "language-no-folder":
            raise
        raise FileError(error.key, **error.values | {"names": Listed((*BUNDLED, HANDMADE))}) from error


def tell_of_reading(model: "LanguageModel", text: str, output: str | None) -> None:
    """All of it about one text and its translation; nothing where it was read as it stands."""
    for sentence in _sentences(model, text, output).values():
        talk(sentence)


def reading_as_json(model: "LanguageModel", text: str, output: str | None) -> dict[str, list[str]]:
    """The same for programs: what the model does not know of a text, and the numbers that its translation lacks."""
    from regard.language.input_text import unknown

    if model.settings.task != "translation":
        return {}
    found = unknown(model, text, output)
    strange = [*found.get("text-strange", []), *found.get("text-unseen", []), *found.get("text-wordless", [])]
    return {"unknown": strange, "lost_numbers": found.get("text-numbers", [])}


class ReadLines:
    """The same about many lines: the first one of each kind, and how many there were."""

    def __init__(self, model: "LanguageModel") -> None:
        self._model = model
        self._first: dict[str, tuple[int, str]] = {}
        self._count: dict[str, int] = {}

    def add(self, number: int, text: str, output: str) -> None:
        """A line that was read, and what was made of it."""
        for kind, sentence in _sentences(self._model, text, output).items():
            self._first.setdefault(kind, (number, sentence))
            self._count[kind] = self._count.get(kind, 0) + 1

    def tell(self) -> None:
        """Once all have been read."""
        for kind, (number, reason) in self._first.items():
            count = self._count[kind]
            if count == 1:
                talk(say("translate-line", number=number, reason=reason))
            else:
                talk(say("translate-lines", number=number, reason=reason, count=count))


def _sentences(model: "LanguageModel", text: str, output: str | None) -> dict[str, str]:
    """What there is to say, by its kind; of a model that goes on with a text, nothing: it reads what is written."""
    from regard.language.input_text import read, told, unknown

    if model.settings.task != "translation":
        return {}
    reading = read(model, text)
    found = {"changed": say("read-as", text=one_line(reading.text))} if reading.changed else {}
    about = unknown(model, text, output).items()
    return found | {kind: one_line(told(model, pieces, kind)) for kind, pieces in about}
