"""Lines of stdin, in batches as they come; a text that is the name of a file."""

import os
import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from regard.cli.streams import talk
from regard.errors import FileError
from regard.printable import printable
from regard.words import say

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
