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
from regard.memory import format_bytes
from regard.messages import escaped_json, printable, say

LARGEST_STDIN = 2**26
"""In bytes. A longer text is of no use to a command and would fill the memory."""
WIDEST = 96
"""In columns, of a page of text: longer lines are hard to read."""


def stdin_bytes(most: int = LARGEST_STDIN) -> bytes:
    """All of stdin. Raises FileError where it is closed, TooLargeError where it has more than `most` bytes."""
    if sys.stdin is None:
        raise FileError("stdin-closed")
    if sys.stdin.isatty():
        print_message(say("cli-reading-stdin"))
    raw = sys.stdin.buffer.read(most + 1)
    if len(raw) > most:
        raise TooLargeError("cli-stdin-large", most=format_bytes(most))
    return raw


def read_stdin() -> str:
    """All of stdin as text. Raises FileError where it is not UTF-8."""
    raw = stdin_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("cli-stdin-not-utf8", position=error.start, byte=f"{raw[error.start]:02x}") from None


def given_text(text: list[str] | None) -> str | None:
    """The text of the arguments, joined by spaces, or of stdin for "-"; None without arguments."""
    if not text:
        return None
    joined = join_words(text)
    return read_stdin() if joined == "-" else joined


def put(text: str = "", end: str = "\n", *, flush: bool = False) -> None:
    """Print data on stdout."""
    print(printable(text), end=end, flush=flush)


def join_words(words: list[str]) -> str:
    """The arguments joined by spaces, decoded as UTF-8 even in another locale, such as C.

    There Python turns bytes that it cannot decode into surrogates, which no model knows.
    """
    text = " ".join(words)
    try:
        return os.fsencode(text).decode() if any("\ud800" <= c <= "\udfff" for c in text) else text
    except UnicodeError:
        return text


def write_json(value: Any) -> None:
    """Print one line of JSON to stdout, in UTF-8 if that is its encoding, else in ASCII with escapes."""
    try:
        text = escaped_json(json.dumps(value, ensure_ascii=False, allow_nan=False))
        if sys.stdout.encoding and codecs.lookup(sys.stdout.encoding).name != "utf-8":
            raise UnicodeError
        text.encode()  # raises on a surrogate, from an argument that is not UTF-8
    except (UnicodeError, LookupError):
        text = json.dumps(value, allow_nan=False)
    print(text)


def print_message(message: str) -> None:
    """Print a message to stderr. If stderr cannot be written, the command continues without."""
    try:
        print(printable(message), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        discard_output(sys.stderr)


# --- closed streams, and missing characters ---------------------------------------------------------------


def prepare_streams() -> None:
    """Make the three streams safe to use, even if one is closed.

    A closed stream is None. `print(file=None)` would write to stdout instead, and the next file opened would get the
    descriptor of the stream. So the descriptor is occupied, stderr goes to the null device, and writing to stdout
    raises.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            _occupy(number)
    if sys.stdout is None:
        sys.stdout = _ClosedStdout()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the program ends
    codecs.register_error(_ESCAPE, _escape)
    _unencodable.clear()
    for output, errors in ((sys.stdout, _ESCAPE), (sys.stderr, "backslashreplace")):
        with contextlib.suppress(AttributeError, ValueError):
            output.reconfigure(errors=errors)  # type: ignore[union-attr]


def discard_output(stream: Any) -> None:
    """Discard unwritten output: at exit Python would try to write it again and report an error."""
    with contextlib.suppress(Exception):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, stream.fileno())
        os.close(null_device)


def report_escapes() -> None:
    """Print a message if stdout could not encode some characters."""
    if _unencodable:
        print_message(say("cli-escaped", encoding=sys.stdout.encoding))


_ESCAPE = "regard-escape"
_unencodable: set[str] = set()
"""The characters that stdout could not encode."""


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    """As "backslashreplace", and record the characters."""
    if isinstance(error, UnicodeEncodeError):
        _unencodable.update(error.object[error.start : error.end])
    return codecs.backslashreplace_errors(error)


def _occupy(number: int) -> None:
    """Open the null device under the descriptor of a closed stream."""
    with contextlib.suppress(OSError):
        found = os.open(os.devnull, os.O_RDWR)
        if found != number:  # another file has that descriptor already
            os.close(found)


class _ClosedStdout(io.TextIOBase):
    """In place of a closed stdout: writing raises instead of losing the text silently."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Raise FileError."""
        raise FileError("stdout-closed")

    def writable(self) -> bool:
        return True


LARGEST_BATCH = 64
LONGEST_LINE = 2**20
"""In bytes. A longer line is not text and is not kept in memory."""
_CHUNK = 2**16


def stdin_batches() -> Iterator[list[str]]:
    """The lines of stdin without their ends, in batches of the lines that have arrived, never a whole long file.

    The first batch is one line and batches grow from there, so that the first output does not wait for 64 lines.
    Raises FileError where stdin is closed, is not UTF-8 or has no line ends, after the lines before that place.
    """
    if sys.stdin is None:
        raise FileError("stdin-closed")
    if sys.stdin.isatty():
        print_message(say("cli-reading-stdin"))
    size, position = 1, 0
    for arrived in _arrived_lines():
        lines = iter(arrived)
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


def _arrived_lines() -> Iterator[list[bytes]]:
    """The complete lines that have arrived; the last one may lack its end."""
    stream: Any = sys.stdin.buffer  # typeshed does not type it as buffered
    rest = b""
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
        if len(rest) > LONGEST_LINE:
            raise FileError("cli-stdin-line-long", most=LONGEST_LINE)
    if rest:
        yield [rest]


def hint_at_file(command: str, text: list[str] | None) -> None:
    """Print how to read a file, if the text is the name of a file."""
    if text and len(text) == 1 and os.path.isfile(text[0]):
        print_message(say("text-is-file", command=command, file=printable(shlex.quote(text[0]))))
