"""Requests of the front end as messages, `{id, ask, …}`, and their replies, `{id, about, arrays}` with buffers.

An error becomes a sentence in both languages, which the front end shows in the place of the picture:
`{id, error: {key, text: {en, zh}}}`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from regard.errors import ArgumentError, RegardError
from regard.messages import LANGUAGES, Listed
from regard.views.explorer.answers import Answer

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "overview": (),
    "head": ("layer", "head"),
    "rectangle": ("layer", "head", "rows", "cols", "most"),
    "explain": ("layer", "head", "query", "most"),
    "effect": ("silence", "cut"),
    "compare": ("layer", "head", "other"),
}
"""What can be asked, and the arguments of each request."""


class Source(Protocol):
    """What answers requests: a method for each; one that is missing is refused."""

    def overview(self) -> Answer: ...


def answered(source: Source, message: Any) -> tuple[dict[str, Any], list[bytes]]:
    """The reply to a message, and its buffers. Raises nothing: every error is a sentence."""
    number = message.get("id") if isinstance(message, Mapping) else None
    try:
        answer = _ask(source, message)
        return {"id": number, "about": answer.about, "arrays": answer.forms}, answer.buffers()
    except RegardError as error:
        return {"id": number, "error": sentence(error)}, []
    except Exception as error:  # a kernel must answer, or the front end waits for ever
        failed = ArgumentError("source-failed", reason=f"{type(error).__name__}: {error}")
        return {"id": number, "error": sentence(failed)}, []


def sentence(error: RegardError) -> dict[str, Any]:
    """An error as the front end shows it, in both languages."""
    return {"key": error.key, "text": {lang: error.text(lang) for lang in LANGUAGES}}


def _ask(source: Source, message: Any) -> Answer:
    ask = message.get("ask") if isinstance(message, Mapping) else None
    method = getattr(source, ask, None) if isinstance(ask, str) and ask in ARGUMENTS else None
    if method is None:
        raise ArgumentError("option-unknown", option="ask", asked=ask, choices=Listed(ARGUMENTS))
    assert isinstance(ask, str)
    given = {name: message[name] for name in ARGUMENTS[ask] if message.get(name) is not None}
    for name, value in given.items():
        if not _is_plain(value):
            raise ArgumentError("source-argument", name=name, ask=ask, found=str(value)[:80])
    found: Answer = method(**given)
    return found


def _is_plain(value: Any) -> bool:
    """Whether it is an integer, a pair of integers, or a dict of integers."""
    numbers = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
    return all(isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**53 for number in numbers)
