"""The errors regard raises: each carries a key and its values, and speaks either language.

An error says what was asked, what was found and what to do. The sentence lives in `words`; here are only the
kinds, each also the built-in kind that people already catch.
"""

from typing import Any

from regard.messages import Language, say, speaking


class RegardError(Exception):
    """What every error of ours is. `key` names the sentence, `values` fill it, `exit_code` is for the command line."""

    exit_code = 2

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.key = key
        self.values = values

    def text(self, lang: Language | None = None) -> str:
        """The sentence, in `lang` or in the language of the moment."""
        if lang is None:
            return say(self.key, **self.values)
        with speaking(lang):  # an error told as the reason of another speaks the same language
            return say(self.key, lang, **self.values)

    def __str__(self) -> str:
        return self.text()


class ShapeError(RegardError, ValueError):
    """Sizes that do not fit together."""


class IndivisibleError(ShapeError, AssertionError):
    """A width that its heads do not divide. Also an AssertionError, because tutorials assert it."""


class DtypeError(RegardError, TypeError):
    """An array of the wrong type, told by its type alone."""


class ArgumentError(RegardError, ValueError):
    """A value outside what an argument may be."""


class UnknownNameError(RegardError, LookupError):
    """A name nobody bears; the sentence suggests the nearest."""


class BackendError(RegardError, RuntimeError):
    """A backend that was asked for by name and cannot do the call."""


class NotKeptError(RegardError, LookupError):
    """Something was asked of a Record that nobody asked it to keep."""


class FileError(RegardError, ValueError):
    """A file that cannot be read as what it should be."""

    exit_code = 3


class AbsentFileError(FileError):
    """A file that is not there."""


class MissingPackageError(RegardError, ImportError):
    """An optional package that is not installed."""

    exit_code = 4


class MissingDeviceError(RegardError, RuntimeError):
    """A device that this machine does not have, or that PyTorch does not see."""

    exit_code = 4


class RunError(RegardError, RuntimeError):
    """A training run that cannot go on; what it had saved is as it was."""

    exit_code = 1


class TooLargeError(RegardError, MemoryError):
    """A request that would not fit, told before it starts."""

    exit_code = 5
