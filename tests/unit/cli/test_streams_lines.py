"""Lines of stdin in batches as they arrive, and input that is not text."""

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


def stdin_of(*chunks: bytes) -> SimpleNamespace:
    """A stdin that yields these chunks."""
    remaining: Iterator[bytes] = iter(chunks)
    return SimpleNamespace(buffer=SimpleNamespace(read1=lambda size: next(remaining, b"")), isatty=lambda: False)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_lines_do_not_depend_on_chunks(lines: list[str], size: int) -> None:
    whole = "".join(f"{line}\n" for line in lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin_of(*(whole[at : at + size] for at in range(0, len(whole), size))))
        assert [line for batch in stdin_batches() for line in batch] == lines


def test_batches_grow_from_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n" * 300)))
    sizes = [len(batch) for batch in stdin_batches()]
    assert sizes == [1, 4, 16, LARGEST_BATCH, LARGEST_BATCH, LARGEST_BATCH, LARGEST_BATCH, 23]


def test_complete_lines_are_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin_of(b"a\nb", b"\n", b"c\nd\ne\nf"))
    assert list(stdin_batches()) == [["a"], ["b"], ["c", "d", "e"], ["f"]]


def test_a_long_file_is_read_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def read1(size: int) -> bytes:
        sizes.append(size)
        return b"a line\n" * (size // 7)

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1), isatty=lambda: False))
    assert len(list(islice(stdin_batches(), 10))) == 10
    assert len(sizes) == 1


def test_input_that_is_not_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin_of(b"a\nb\n\xe4\xbd\xff\nc\n"))
    batches = stdin_batches()
    assert [next(batches), next(batches)] == [["a"], ["b"]]
    with pytest.raises(FileError, match="byte 0xe4 at position 4"):
        next(batches)
    monkeypatch.setattr(sys, "stdin", stdin_of(*[b"\0" * 2**16] * (LONGEST_LINE // 2**16 + 1)))
    with pytest.raises(FileError, match="a line of more than 1048576 bytes"):
        next(stdin_batches())
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(FileError, match="stdin is closed"):
        next(stdin_batches())
