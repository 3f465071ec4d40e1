"""Standard streams of the commands: `-` is stdin, JSON goes to stdout, messages go to stderr."""

import codecs
import contextlib
import io
import json
import os
import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from regard.errors import FileError, TooLargeError
from regard.memory import spell
from regard.messages import say
from regard.printable import escaped_json, printable

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
    joined = one_text(text)
    return read_stdin() if joined == "-" else joined


def put(text: str = "", end: str = "\n", *, flush: bool = False) -> None:
    """Print data on stdout."""
    print(printable(text), end=end, flush=flush)


def one_text(words: list[str]) -> str:
    """Words without quotes around them as one text; UTF-8 also where the locale is another, such as C.

    There Python reads what it cannot decode as half characters, which no model knows.
    """
    text = " ".join(words)
    try:
        return os.fsencode(text).decode() if any("\ud800" <= c <= "\udfff" for c in text) else text
    except UnicodeError:
        return text


def write_json(value: Any) -> None:
    """One line of JSON on stdout: in UTF-8 where that is the encoding of stdout, else in ASCII with escapes."""
    try:
        text = escaped_json(json.dumps(value, ensure_ascii=False, allow_nan=False))
        if sys.stdout.encoding and codecs.lookup(sys.stdout.encoding).name != "utf-8":
            raise UnicodeError
        text.encode()  # half a character, out of an argument that is no UTF-8
    except (UnicodeError, LookupError):
        text = json.dumps(value, allow_nan=False)
    print(text)


def talk(sentence: str) -> None:
    """Say something that is not data. Where stderr cannot be written, the command goes on without."""
    try:
        print(printable(sentence), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        forget(sys.stderr)


# --- streams that are closed, or lack characters ----------------------------------------------------------


def prepare_streams() -> None:
    """Make the three streams safe to use, however the program was started.

    A closed stream is None. `print(file=None)` would write to stdout instead, and the next file that is opened would
    get the stream's number. So the number is taken; stderr becomes a stream to nowhere; writing to stdout is an error.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            _occupy(number)
    if sys.stdout is None:
        sys.stdout = _ClosedStdout()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the program runs
    codecs.register_error(_ESCAPE, _escape)
    _escaped.clear()
    for output, errors in ((sys.stdout, _ESCAPE), (sys.stderr, "backslashreplace")):
        with contextlib.suppress(AttributeError, ValueError):
            output.reconfigure(errors=errors)  # type: ignore[union-attr]


def forget(stream: Any) -> None:
    """Send what is still unwritten nowhere: Python would try it again at its end, and complain about it."""
    with contextlib.suppress(Exception):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def tell_of_escapes() -> None:
    """Say so where stdout lacked characters of what was written."""
    if _escaped:
        talk(say("cli-escaped", encoding=sys.stdout.encoding))


_ESCAPE = "regard-escape"
_escaped: set[str] = set()
"""The characters that stdout lacked."""


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """As "backslashreplace", and remembered."""
    if isinstance(error, UnicodeEncodeError):
        _escaped.update(error.object[error.start : error.end])
    return codecs.backslashreplace_errors(error)


def _occupy(number: int) -> None:
    """Open the null device under the number of a stream that is closed."""
    with contextlib.suppress(OSError):
        found = os.open(os.devnull, os.O_RDWR)
        if found != number:  # some other file has that number already
            os.close(found)


class _ClosedStdout(io.TextIOBase):
    """Stands for a stdout that is closed: what is written to it is an error, and not lost in silence."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Raises FileError."""
        raise FileError("stdout-closed")

    def writable(self) -> bool:
        return True


LARGEST_BATCH = 64
LONGEST_LINE = 2**20
"""In bytes. What has no end of line for so long is no text, and is not held in memory."""
_CHUNK = 2**16


def stdin_batches() -> Iterator[list[str]]:
    """The lines of stdin, without their ends: those that wait come together, and never the whole of a long file.

    The first line comes alone and batches grow from there, so that the first answer is not the answer to 64.
    Raises FileError where stdin is closed, is no UTF-8 or has no lines; the lines before such a place come first.
    """
    if sys.stdin is None:
        raise FileError("stdin-closed")
    if sys.stdin.isatty():
        talk(say("cli-reading-stdin"))
    size, position = 1, 0
    for waiting in _waiting():
        lines = iter(waiting)
        while batch := list(islice(lines, size)):
            size = min(4 * size, LARGEST_BATCH)
            texts = []
            for raw in batch:
                try:
                    texts.append(raw.decode("utf-8" if position else "utf-8-sig").removesuffix("\r"))
                except UnicodeDecodeError as error:
                    if texts:
                        yield texts
                    at, byte = position + error.start, f"{raw[error.start]:02x}"
                    raise FileError("cli-stdin-not-utf8", position=at, byte=byte) from None
                position += len(raw) + 1
            yield texts


def _waiting() -> Iterator[list[bytes]]:
    """The lines that have come, as soon as any is whole; the last one may lack its end."""
    stream: Any = sys.stdin.buffer  # typeshed does not know that it is buffered
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
        if len(rest) > LONGEST_LINE:
            raise FileError("cli-stdin-line-long", most=LONGEST_LINE)
    if rest:
        yield [rest]


def tell_of_file(command: str, text: list[str] | None) -> None:
    """Say how a file is read, where a text was given that is the name of one."""
    if text and len(text) == 1 and os.path.isfile(text[0]):
        talk(say("text-is-file", command=command, file=printable(shlex.quote(text[0]))))
