"""Lines of stdin: as they come, never all of them at once, and what is no line of text."""

import io
import sys
from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli.streams import LARGEST_BATCH, LONGEST_LINE, stdin_batches
from regard.errors import FileError


def give(*chunks: bytes) -> SimpleNamespace:
    """A stdin that has these pieces to read, one after the other."""
    waiting: Iterator[bytes] = iter(chunks)
    return SimpleNamespace(buffer=SimpleNamespace(read1=lambda size: next(waiting, b"")), isatty=lambda: False)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_every_line_comes_once_wherever_the_pieces_end(lines: list[str], size: int) -> None:
    whole = "".join(f"{line}\n" for line in lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", give(*(whole[at : at + size] for at in range(0, len(whole), size))))
        assert [line for batch in stdin_batches() for line in batch] == lines


def test_the_first_alone_then_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n" * 300)))
    sizes = [len(batch) for batch in stdin_batches()]
    assert sizes == [1, 4, 16, LARGEST_BATCH, LARGEST_BATCH, LARGEST_BATCH, LARGEST_BATCH, 23]


def test_what_waits_is_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", give(b"a\nb", b"\n", b"c\nd\ne\nf"))
    assert list(stdin_batches()) == [["a"], ["b"], ["c", "d", "e"], ["f"]]


def test_a_long_file_is_read_as_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def read1(size: int) -> bytes:
        asked.append(size)
        return b"a line\n" * (size // 7)

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1), isatty=lambda: False))
    assert len(list(islice(stdin_batches(), 10))) == 10
    assert len(asked) == 1


def test_what_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", give(b"a\nb\n\xe4\xbd\xff\nc\n"))
    batches = stdin_batches()
    assert [next(batches), next(batches)] == [["a"], ["b"]]
    with pytest.raises(FileError, match="byte 0xe4 at position 4"):
        next(batches)
    monkeypatch.setattr(sys, "stdin", give(*[b"\0" * 2**16] * (LONGEST_LINE // 2**16 + 1)))
    with pytest.raises(FileError, match="a line of more than 1048576 bytes"):
        next(stdin_batches())
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FileError, match="stdin is closed"):
        next(stdin_batches())
