"""All messages of regard, each in English and in Chinese; and untrusted text made safe to print.

`Message` requires both languages. This package chooses the language and fills in values; the texts are in its modules,
one for each subject. File names, names of records and metrics, keys of a configuration, tokens and the output of a
learner's program may contain escape sequences: every text that the command line prints, and every value in a message,
passes through `printable`.
"""

import contextvars
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Literal, NamedTuple

_CONTROL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of text
    "\u00ad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible, or line ends
    "\ud800-\udfff"  # half a character
    "\U000e0000-\U000e007f"  # invisible copies of ASCII
    "]"
)


def printable(text: str) -> str:
    r"""The text with every control character replaced by a visible sign; line feeds and tabs stay.

    >>> printable("a\x1b[31m\tb\r\n"), printable("\x9b0m \u202e \r")
    ('a␛[31m\tb\n', '⟨9B⟩0m ⟨202E⟩ ␍')
    """
    if _CONTROL.search(text) is None:
        return text
    return _CONTROL.sub(lambda found: sign(found[0]), text.replace("\r\n", "\n"))


def is_control(character: str) -> bool:
    """Whether a terminal would act on the character, or show nothing for it."""
    return _CONTROL.match(character) is not None


def sign(character: str) -> str:
    r"""The visible sign for a control character.

    >>> sign("\x1b"), sign("\x7f"), sign("\x85"), sign("\u202e")
    ('␛', '␡', '⟨85⟩', '⟨202E⟩')
    """
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    return "␡" if code == 127 else f"⟨{code:02X}⟩"


def one_line(text: str) -> str:
    r"""The printable text on one line.

    >>> one_line("你好。\n再见。")
    '你好。 再见。'
    """
    return printable(" ".join(text.split("\n")))


def escaped_json(text: str) -> str:
    r"""JSON with every control character written as a JSON escape.

    >>> escaped_json('{"name": "\x9b0m\u202e"}')
    '{"name": "\\u009b0m\\u202e"}'
    """
    return _CONTROL.sub(lambda found: _json_escape(ord(found[0])), text)


def _json_escape(code: int) -> str:
    if code < 2**16:
        return f"\\u{code:04x}"
    high, low = divmod(code - 2**16, 2**10)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

MODULES = (
    "attention",
    "capture",
    "editing",
    "commands",
    "diagnoses",
    "explorer",
    "course_commands",
    "files",
    "language_commands",
    "language_models",
    "loading",
    "learning",
    "models",
    "runs",
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
