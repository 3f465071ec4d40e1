"""What the commands share about streams: `-` is stdin, JSON goes out whole, talk goes to stderr.

Nothing that is printed steers the terminal: data and talk are made printable here, in one place.
"""

import json
import sys
from typing import Any

from regard.errors import FileError, TooLargeError
from regard.memory import spell
from regard.printable import escaped_json, printable
from regard.words import say

LARGEST_STDIN = 2**26
"""In bytes. What goes on for longer is no text that a command could use, and would fill the memory."""


def stdin_bytes(most: int = LARGEST_STDIN) -> bytes:
    """All of stdin. FileError where it is closed, TooLargeError where it has more than `most` bytes."""
    if sys.stdin is None:
        raise FileError("stdin-closed")
    if sys.stdin.isatty():
        talk(say("cli-reading-stdin"))
    raw = sys.stdin.buffer.read(most + 1)
    if len(raw) > most:
        raise TooLargeError("cli-stdin-large", most=spell(most))
    return raw


def read_stdin() -> str:
    """All of stdin as text; FileError where it is no UTF-8."""
    raw = stdin_bytes()
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


def put(text: str = "", end: str = "\n", *, flush: bool = False) -> None:
    """Print data on stdout."""
    print(printable(text), end=end, flush=flush)


def write_json(value: Any) -> None:
    """One line of JSON on stdout, in UTF-8."""
    print(escaped_json(json.dumps(value, ensure_ascii=False, allow_nan=False)))


def talk(sentence: str) -> None:
    """Say something that is not data."""
    print(printable(sentence), file=sys.stderr, flush=True)
