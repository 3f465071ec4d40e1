"""All messages of regard, each in English and in Chinese.

`Message` requires both languages. This package chooses the language and fills in values; the texts are in its modules,
one for each subject.
"""

import contextvars
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Literal, NamedTuple

from regard.printable import printable

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

MODULES = (
    "attention",
    "building",
    "capture",
    "editing",
    "commands",
    "diagnoses",
    "explorer",
    "explorer_panels",
    "course_commands",
    "files",
    "hand_calculation",
    "language_commands",
    "language_models",
    "loading",
    "learning",
    "models",
    "runs",
    "surveys",
    "teaching",
    "text_files",
    "traces",
    "training",
    "tutorials",
    "verdicts",
    "views",
)
"""The modules with the texts, one for each subject."""

_chosen: contextvars.ContextVar[Language | None] = contextvars.ContextVar("regard_language", default=None)


class Message(NamedTuple):
    """One message in both languages, with the same `{placeholders}`."""

    en: str
    zh: str


class Listed(tuple[object, ...]):
    """A list inside a message: joined with a comma in English and with 、 in Chinese.

    >>> say("unknown-choice", "zh", name="kind", value="x", choices=Listed(["self", "cross"]))
    "没有 kind='x' 这个选项；可选：self、cross"
    """

    @classmethod
    def few(cls, things: Iterable[object], most: int = 5) -> "Listed":
        """At most `most` of them, and … where there are more."""
        first = list(islice(things, most + 1))
        return cls(first if len(first) <= most else [*first[:most], "…"])

    def joined(self, lang: Language) -> str:
        return ("、" if lang == "zh" else ", ").join(map(str, self))


def language() -> Language:
    """The current language: the one set by `use_language`, else that of the environment.

    `REGARD_LANG` takes precedence over the usual locale variables, in their usual order.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    for variable in ("REGARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


@contextmanager
def use_language(lang: Language) -> Iterator[None]:
    """Use `lang` inside the block, whatever the environment sets."""
    token = _chosen.set(lang)
    try:
        yield
    finally:
        _chosen.reset(token)


def say(key: str, lang: Language | None = None, /, **values: Any) -> str:
    """The message named `key` with its values filled in; control characters in them become visible signs.

    >>> say("prefix-negative", "en", value=-1)
    'Mask.prefix(n) needs n of at least 0; found -1'
    """
    if lang is not None and lang not in LANGUAGES:
        from regard.errors import ArgumentError

        raise ArgumentError("unknown-choice", name="lang", value=lang, choices=Listed(LANGUAGES))
    chosen = lang or language()
    texts = {name: _formatted(value, chosen) for name, value in values.items()}
    return getattr(catalogue()[key], chosen).format(**texts)


def _formatted(value: Any, lang: Language) -> Any:
    """A value for a message; numbers are unchanged, because the message formats them."""
    if isinstance(value, Listed):
        return printable(value.joined(lang))
    return printable(str(value)) if isinstance(value, str | os.PathLike | BaseException) else value


@cache
def catalogue() -> dict[str, Message]:
    """All messages by key. Loaded on first use, so that importing regard stays fast."""
    modules = (import_module(f"regard.messages.{name}") for name in MODULES)
    merged: dict[str, Message] = {}
    for module in modules:
        repeated = merged.keys() & module.MESSAGES.keys()
        assert not repeated, f"defined twice: {sorted(repeated)}"
        merged.update(module.MESSAGES)
    return merged
