"""What the commands share about streams: `-` is stdin, JSON goes out whole, talk goes to stderr."""

import json
import sys
from typing import Any

from regard.errors import FileError
from regard.words import say


def read_stdin() -> str:
    """All of stdin as text; FileError where it is no UTF-8."""
    if sys.stdin is None:
        raise FileError("stdin-closed")
    if sys.stdin.isatty():
        talk(say("cli-reading-stdin"))
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("cli-stdin-not-utf8", position=error.start, byte=f"{raw[error.start]:02x}") from None


def given_text(text: list[str] | None) -> str | None:
    """The text as given, or from stdin; None without one. Words without quotes around them are one text."""
    if not text:
        return None
    joined = " ".join(text)
    return read_stdin() if joined == "-" else joined


def write_json(value: Any) -> None:
    """One line of JSON on stdout, in UTF-8."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def talk(sentence: str) -> None:
    """Say something that is not data."""
    print(sentence, file=sys.stderr, flush=True)
