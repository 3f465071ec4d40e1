"""Every sentence the software says, in English and in Chinese, side by side.

An entry cannot exist in one language only: `Words` needs both. This room knows how to pick a language and
fill in values; it knows nothing about who is speaking.
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
    "capture",
    "commands",
    "files",
    "hand_calculation",
    "language_commands",
    "language_models",
    "learning",
    "models",
    "page",
    "runs",
    "sandbox",
    "text_files",
    "traces",
    "training",
    "tutorials",
    "verdicts",
    "views",
)
"""The catalogues: a module for each subject."""

_chosen: contextvars.ContextVar[Language | None] = contextvars.ContextVar("regard_language", default=None)


class Words(NamedTuple):
    """One sentence in both languages, with the same `{placeholders}`."""

    en: str
    zh: str


class Listed(tuple[object, ...]):
    """Things that a sentence names one after another: in Chinese 、 stands between them.

    >>> say("unknown-choice", "zh", name="kind", value="x", choices=Listed(["self", "cross"]))
    "没有 kind='x' 这个选项；可选：self、cross"
    """

    @classmethod
    def few(cls, things: Iterable[object], most: int = 5) -> "Listed":
        """So many of them at most, and a sign where there are more."""
        first = list(islice(things, most + 1))
        return cls(first if len(first) <= most else [*first[:most], "…"])

    def joined(self, lang: Language) -> str:
        return ("、" if lang == "zh" else ", ").join(map(str, self))


def language() -> Language:
    """The language to speak: the one chosen by `speaking`, else the environment's.

    `REGARD_LANG` wins over the usual locale variables, in their usual order.
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
def speaking(lang: Language) -> Iterator[None]:
    """Speak `lang` inside the block, whatever the environment says."""
    token = _chosen.set(lang)
    try:
        yield
    finally:
        _chosen.reset(token)


def say(key: str, lang: Language | None = None, /, **values: Any) -> str:
    """The sentence called `key`, with its values filled in; what would steer a terminal in them is shown as a sign.

    >>> say("prefix-negative", "en", value=-1)
    'Mask.prefix(n) needs n of at least 0; found -1'
    """
    if lang is not None and lang not in LANGUAGES:
        from regard.errors import ArgumentError

        raise ArgumentError("unknown-choice", name="lang", value=lang, choices=Listed(LANGUAGES))
    spoken = lang or language()
    return getattr(catalogue()[key], spoken).format(**{name: _told(value, spoken) for name, value in values.items()})


def _told(value: Any, lang: Language) -> Any:
    """A value as a sentence names it: numbers as they are, for the sentence says how many places they have."""
    if isinstance(value, Listed):
        return printable(value.joined(lang))
    return printable(str(value)) if isinstance(value, str | os.PathLike | BaseException) else value


@cache
def catalogue() -> dict[str, Words]:
    """All entries by key. Loaded on the first sentence, so that importing regard stays quick."""
    modules = (import_module(f"regard.messages.{name}") for name in MODULES)
    merged: dict[str, Words] = {}
    for module in modules:
        repeated = merged.keys() & module.WORDS.keys()
        assert not repeated, f"said twice: {sorted(repeated)}"
        merged.update(module.WORDS)
    return merged
