"""Corpora: files are read, and each bad line is reported or skipped and counted."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ArgumentError, FileError
from regard.text import read_lines, read_pairs, read_text
from regard.text.corpus import LONGEST_LINE


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


WriteFile = Callable[[str, str | bytes], Path]


# --- valid files -----------------------------------------------------------------------------------------


def test_pairs_from_a_table(write_file: WriteFile) -> None:
    path = write_file("a.tsv", "\ufeffHi.\t你好。\r\nBye.\t再见。\r\n")
    corpus = read_pairs(path)
    assert corpus.columns == (["Hi.", "Bye."], ["你好。", "再见。"])
    assert (corpus.lines, corpus.skipped, corpus.problems, corpus.name) == ([1, 2], 0, (), "a.tsv")
    assert corpus.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert corpus.path(1) == str(path)


def test_pairs_from_records_and_several_files(write_file: WriteFile) -> None:
    first = write_file("a.jsonl", '{"source": "a", "target": "b", "more": 1}\n{"target": "d", "source": "c"}')
    second = write_file("b.tsv", "e\tf")
    corpus = read_pairs([first, second])
    assert corpus.columns == (["a", "c", "e"], ["b", "d", "f"])
    assert corpus.lines == [1, 2, 1]
    assert [Path(corpus.path(i)).name for i in range(3)] == ["a.jsonl", "a.jsonl", "b.tsv"]
    named = write_file("c.jsonl", '{"en": "a", "zh": "b"}')
    assert read_pairs(named, columns=("zh", "en")).columns == (["b"], ["a"])


def test_pairs_from_two_plain_files(write_file: WriteFile) -> None:
    paths = [write_file("a.en", "one\ntwo\n"), write_file("a.de", "eins\nzwei")]
    corpus = read_pairs(paths)
    assert corpus.columns == (["one", "two"], ["eins", "zwei"])
    assert corpus.sha256 == hashlib.sha256(b"one\ntwo\neins\nzwei").hexdigest()


def test_lines(write_file: WriteFile) -> None:
    assert read_lines(write_file("a.txt", "one\n\ntwo\x85\u2028\x0bthree\n")).columns == (
        ["one", "", "two\x85\u2028\x0bthree"],
    )
    assert read_lines(write_file("a.tsv", "t\ta\tx\nu\tb\ty\n"), column=3).columns == (["x", "y"],)
    assert read_lines(write_file("a.jsonl", '{"text": "a\\nb"}\n')).columns == (["a\nb"],)


@settings(max_examples=40)
@given(lines=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8), min_size=1).filter(any))
def test_any_line_is_read_unchanged(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + ("\n".join(lines) + "\n").encode())
    if "".join(lines).encode().isspace():
        return
    assert read_lines(path).columns == (lines,)
    assert read_text(path).columns == (["\n".join(lines) + "\n"],)


def test_documents(write_file: WriteFile) -> None:
    texts = [
        write_file("a.txt", "one\r\n\r\ntwo"),
        write_file("b.txt", " three\n\n"),
        write_file("c.jsonl", '{"text": "four"}\n{"text": "five"}'),
    ]
    assert read_text(texts).columns == (["one\n\ntwo", " three\n\n", "four", "five"],)


# --- bad lines -------------------------------------------------------------------------------------------

LONG = "x" * (LONGEST_LINE + 1)
BAD_LINES: dict[str, tuple[Any, str, bytes, str]] = {
    "empty line": (read_pairs, "a.tsv", b"", "is empty"),
    "one column": (read_pairs, "a.tsv", b"only", "found, separated by tabs: 1; wanted: 2"),
    "three columns": (read_pairs, "a.tsv", b"a\tb\tc", "by tabs: 3; wanted: 2"),
    "empty cell": (read_pairs, "a.tsv", b"a\t ", "column 2 is empty"),
    "gbk": (read_pairs, "a.tsv", "a\t中文".encode("gbk"), r"byte 3 \(0xD6\) is not UTF-8"),
    "long": (read_pairs, "a.tsv", f"{LONG}\tb".encode(), "has 1,048,579 characters, where 1,048,576"),
    "nul": (read_pairs, "a.tsv", b"a\tb\0", "character 4 is NUL"),
    "long in text": (read_text, "a.txt", LONG.encode(), "characters"),
    "latin-1 in text": (read_text, "a.txt", b"caf\xe9 x", r"byte 4 \(0xE9\)"),
    "latin-1 in lines": (read_lines, "a.txt", b"caf\xe9 x", r"byte 4 \(0xE9\)"),
    "no json": (read_lines, "a.jsonl", b"{", "is not JSON"),
    "deep json": (read_lines, "a.jsonl", b"[" * 100_000, "is not JSON"),
    "half a character": (read_lines, "a.jsonl", b'{"text": "\\ud800"}', "is not JSON"),
    "a list": (read_lines, "a.jsonl", b'["a"]', "JSON list"),
    "no field": (read_lines, "a.jsonl", b'{"txt": "a"}', "field 'text'; its fields: txt"),
    "a number": (read_lines, "a.jsonl", b'{"text": 3}', "field 'text'"),
    "empty field": (read_lines, "a.jsonl", b'{"text": " "}', "column text is empty"),
}
GOOD = {"a.tsv": b"a\tb", "a.txt": b"a b", "a.jsonl": b'{"text": "a b"}'}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_reported_or_skipped(case: str, write_file: WriteFile) -> None:
    read, name, line, message = BAD_LINES[case]
    good = GOOD[name]
    path = write_file(name, b"\n".join([good, good, line, good, b""]))
    with pytest.raises(FileError, match=rf"{name}, line 3\b.*{message}.*--skip-bad") as caught:
        read(path)
    assert "第 3 行" in caught.value.text("zh")
    corpus = read(path, skip_bad=True)
    assert corpus.skipped == 1
    assert corpus.problems == (str(caught.value),)
    if read is read_text:
        assert corpus.columns == (["a b\na b\na b\n"],)
    else:
        assert corpus.lines == [1, 2, 4]

    path = write_file(name, b"\n".join([line, good, line, line, b""]))
    with pytest.raises(FileError, match=r"line 1\b.*\(and 2 more bad lines\)"):
        read(path)
    assert read(path, skip_bad=True).skipped == 3
    with pytest.raises(FileError, match="nothing is left of"):
        read(write_file(name, b"\n".join([line, line])) if line else write_file(name, b"\n\nx"), skip_bad=True)


def test_problems_are_reported_in_line_order(write_file: WriteFile) -> None:
    path = write_file("a.tsv", b"a\tb\nonly\n\xff\tb\n" + b"only\n" * 20)
    corpus = read_pairs(path, skip_bad=True)
    assert (corpus.skipped, len(corpus.problems)) == (22, 5)
    assert [message.split(", ")[1].split(":")[0] for message in corpus.problems[:3]] == ["line 2", "line 3", "line 4"]


def test_parallel_files_stay_aligned(write_file: WriteFile) -> None:
    english = write_file("a.en", b"one\n\xff\nthree\n\nfive\n")
    german = write_file("a.de", b"eins\n\xff\ndrei\nvier\nf\xfcnf\n")
    with pytest.raises(FileError, match=r"a\.en \+ .*a\.de, line 2.*and 2 more"):
        read_pairs([english, german])
    corpus = read_pairs([english, german], skip_bad=True)
    assert corpus.columns == (["one", "three"], ["eins", "drei"])
    assert (corpus.lines, corpus.skipped) == ([1, 3], 3)
    with pytest.raises(FileError, match=r"a\.en has 5 lines and .*b\.de has 1"):
        read_pairs([english, write_file("b.de", "eins")], skip_bad=True)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_refused(content: bytes, write_file: WriteFile) -> None:
    for read, name in ((read_pairs, "a.tsv"), (read_lines, "a.txt"), (read_text, "a.txt")):
        path = write_file(name, content)
        with pytest.raises(FileError, match=f"{name} is empty"):
            read(path)
        with pytest.raises(FileError, match="nothing is left"):
            read(path, skip_bad=True)


def test_unreadable_files_are_refused(write_file: WriteFile, tmp_path: Path) -> None:
    for read in (read_pairs, read_lines, read_text):
        with pytest.raises(FileError, match="no file"):
            read(tmp_path / "nothing.tsv")
        with pytest.raises(FileError, match="is a folder"):
            read(tmp_path)
        with pytest.raises(FileError, match=r"one JSON value.*jq -c '.*{text: .}'"):
            read(write_file("a.json", json.dumps(["a"])))
        with pytest.raises(ArgumentError, match="no file was given"):
            read([])


def test_invalid_columns_are_refused(write_file: WriteFile) -> None:
    table = write_file("a.tsv", "a\tb\tc")
    assert read_pairs(table, columns=(3, 1)).columns == (["c"], ["a"])
    for columns, message in (((1, 4), "column 4 is requested"), ((0, 1), "counted from 1"), ((1,), "two columns")):
        with pytest.raises((FileError, ArgumentError), match=message):
            read_pairs(table, columns=columns)
    with pytest.raises(ArgumentError, match="two plain files"):
        read_pairs([write_file("a.en", "a"), write_file("a.de", "b"), write_file("a.fr", "c")])


def test_a_long_line_takes_at_most_three_copies(write_file: WriteFile) -> None:
    path = write_file("a.tsv", b"a\tb\n" + b"x" * 10_000_000 + b"\ty\n")
    tracemalloc.start()
    try:
        assert read_pairs(path, skip_bad=True).skipped == 1
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 35_000_000, "bytes, text and lines: three times the file, no more"
