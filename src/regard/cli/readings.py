"""A model that reads, and what is told about it: a text spelled otherwise, and what the model does not know."""

from typing import TYPE_CHECKING

from regard.cli.handmade_view import NAME as HANDMADE
from regard.cli.streams import talk
from regard.errors import FileError
from regard.printable import one_line
from regard.words import Listed, say

if TYPE_CHECKING:
    from regard.language import LanguageModel


def load_reader(name: str) -> "LanguageModel":
    """The model to be looked at; where there is none, the one built by hand is named among those that there are."""
    from regard.language import BUNDLED, load

    try:
        return load(name)
    except FileError as error:
        if error.key != "language-no-folder":
            raise
        raise FileError(error.key, **error.values | {"names": Listed((*BUNDLED, HANDMADE))}) from error


def tell_of_reading(model: "LanguageModel", text: str) -> None:
    """Both about one text; nothing where it was read as it stands."""
    for sentence in _sentences(model, text).values():
        talk(sentence)


class ReadLines:
    """The same about many lines: the first one of each kind, and how many there were."""

    def __init__(self, model: "LanguageModel") -> None:
        self._model = model
        self._first: dict[str, tuple[int, str]] = {}
        self._count: dict[str, int] = {}

    def add(self, number: int, text: str) -> None:
        """A line that was read."""
        for kind, sentence in _sentences(self._model, text).items():
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


def _sentences(model: "LanguageModel", text: str) -> dict[str, str]:
    """What there is to say, by its kind; of a model that goes on with a text, nothing: it reads what is written."""
    from regard.language.reading import read, told

    if model.settings.task != "translation":
        return {}
    reading = read(model, text)
    found = {"changed": say("read-as", text=one_line(reading.text))} if reading.changed else {}
    return found | ({"strange": one_line(told(model, reading.strange))} if reading.strange else {})
