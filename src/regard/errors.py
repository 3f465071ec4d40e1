"""The error classes of regard: each error carries a message key and values, and has text in both languages.

A message states the request, what was found and what to do. The texts are in `regard.messages`. Each class also
inherits from the built-in exception that users already catch.
"""

from typing import Any

from regard.messages import Language, say, use_language


class RegardError(Exception):
    """Base of all errors of regard. `key` names the message, `values` fill it, `exit_code` is for the command line."""

    exit_code = 2

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values

    def text(self, lang: Language | None = None) -> str:
        """The message in `lang`, or in the current language."""
        if lang is None:
            return say(self.key, **self.values)
        with use_language(lang):  # an error among the values is shown in the same language
            return say(self.key, lang, **self.values)

    def __str__(self) -> str:
        return self.text()


class ShapeError(RegardError, ValueError):
    """Sizes that do not fit together."""


class IndivisibleError(ShapeError, AssertionError):
    """A width that is not divisible by the number of heads. Also an AssertionError, because tutorials assert it."""


class DtypeError(RegardError, TypeError):
    """An array of the wrong type or dtype; values are not read."""


class ArgumentError(RegardError, ValueError):
    """A value that an argument does not accept."""


class UnknownNameError(RegardError, LookupError):
    """An unknown name; the message suggests the nearest."""


class BackendError(RegardError, RuntimeError):
    """A backend was requested by name and cannot run the call."""


class NotKeptError(RegardError, LookupError):
    """A Record does not hold the requested data, because `See` did not request it."""


class FileError(RegardError, ValueError):
    """A file that is not valid in its expected format."""

    exit_code = 3


class AbsentFileError(FileError):
    """A file that does not exist."""


class MissingPackageError(RegardError, ImportError):
    """An optional package that is not installed."""

    exit_code = 4


class MissingDeviceError(RegardError, RuntimeError):
    """A device that this machine does not have, or that PyTorch does not see."""

    exit_code = 4


class RunError(RegardError, RuntimeError):
    """A training run that cannot continue; its saved files are unchanged."""

    exit_code = 1


class TooLargeError(RegardError, MemoryError):
    """A request that would not fit in memory, refused before it starts."""

    exit_code = 5


def in_one_line(error: Exception) -> str:
    """An error in one line, to be quoted in a message.

    >>> in_one_line(ValueError("no room\\nfor it"))
    'ValueError: no room'
    """
    return f"{type(error).__name__}: {error}".splitlines()[0]
