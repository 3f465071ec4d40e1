"""Corpora read from text, .tsv and .jsonl files; bad lines reported or skipped, lines too long for a model dropped."""

import hashlib
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from regard.errors import ArgumentError, FileError
from regard.files.output import reason_of
from regard.files.safe_open import read_file
from regard.messages import Listed
from regard.text.word_links import parse_links, split_words

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Parse: TypeAlias = Callable[[str], Iterable[str]]
Item = TypeVar("Item")

LARGEST_FILE = 2**32
"""In bytes; in memory a text takes about four times as much."""
LONGEST_LINE = 2**20
MOST_REPORTED = 5  # problems that are reported one by one; the rest are counted
TABLES, RECORDS = (".tsv", ".tab"), (".jsonl", ".ndjson")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Lines of text, one column to three, and where each comes from.

    columns     one list of texts for each column, all of one length; the third column holds word links
    lines       the number of each line in its file, from 1
    skipped     the number of bad lines that were left out
    problems    messages about the first few of them
    name        the names of the files
    sha256      the hash of their bytes
    files       each file with the number of lines kept up to its end
    """

    columns: tuple[list[str], ...]
    lines: list[int]
    skipped: int
    problems: tuple[str, ...]
    name: str
    sha256: str
    files: tuple[tuple[str, int], ...]

    def __len__(self) -> int:
        return len(self.lines)

    def only(self, kept: Sequence[int]) -> "Corpus":
        """The corpus with only these lines, given in ascending order."""
        return replace(
            self,
            columns=tuple([column[i] for i in kept] for column in self.columns),
            lines=[self.lines[i] for i in kept],
            files=tuple((name, bisect_left(kept, end)) for name, end in self.files),
        )

    def path(self, i: int) -> str:
        """The file of line `i` of the columns."""
        return self.files[bisect_right([end for _, end in self.files], i)][0]


class BadLineError(Exception):
    """What is wrong with a line; the reader of the file adds where it is."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key, self.values = key, values


@dataclass
class _Reader:
    """Reads files into a Corpus."""

    skip_bad: bool
    n_columns: int
    columns: tuple[list[str], ...] = field(init=False)
    lines: list[int] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)
    skipped: int = 0

    def __post_init__(self) -> None:
        self.columns = tuple([] for _ in range(self.n_columns))
        self.hash = hashlib.sha256()

    def add_problem(self, key: str, **values: object) -> None:
        """Count a problem; store the first few."""
        self.skipped += 1
        if len(self.errors) < MOST_REPORTED:
            self.errors.append(FileError(key, **values))

    def lines_of(self, path: Path) -> "list[str | BadLineError]":
        """The lines of a file, bad ones as errors."""
        found = self.split_lines(path)
        return found[:-1] if found and found[-1] == "" else found  # after the end of the last line

    def split_lines(self, path: Path) -> "list[str | BadLineError]":
        """The text between the line ends of a file, bad lines as errors; the last may be empty."""
        content = _content(path)
        self.hash.update(content)
        content = content.removeprefix(b"\xef\xbb\xbf")
        if not content or content.isspace():
            self.add_problem("corpus-empty", path=str(path))
            return []
        try:
            lines = content.decode().replace("\r\n", "\n").split("\n")
        except UnicodeDecodeError:
            return [_decoded(line) for line in content.replace(b"\r\n", b"\n").split(b"\n")]
        if b"\0" in content or max(map(len, lines)) > LONGEST_LINE:
            return [_decoded(line) for line in lines]
        return [*lines]

    def add_parsed(
        self, path: str, items: "Sequence[Item | BadLineError]", parse: Callable[[Item], Iterable[str]]
    ) -> None:
        """Add the lines of a file, each parsed with `parse`."""
        for number, item in enumerate(items, 1):
            try:
                if isinstance(item, BadLineError):
                    raise item
                for column, value in zip(self.columns, parse(item), strict=True):
                    column.append(value)
                self.lines.append(number)
            except BadLineError as bad:
                self.add_problem(bad.key, path=path, line=number, **bad.values)
        self.files.append((path, len(self.lines)))

    def valid_lines(self, path: str, lines: "Sequence[str | BadLineError]") -> list[str]:
        """The valid lines; the others are reported."""
        valid_lines = [line for line in lines if isinstance(line, str)]
        if len(valid_lines) < len(lines):
            for number, line in enumerate(lines, 1):
                if isinstance(line, BadLineError):
                    self.add_problem(line.key, path=path, line=number, **line.values)
        return valid_lines

    def add_texts(self, path: str, texts: list[str], numbers: list[int]) -> None:
        """Add texts that need no parsing."""
        self.columns[0].extend(texts)
        self.lines.extend(numbers)
        self.files.append((path, len(self.lines)))

    def corpus(self, paths: Sequence[Path]) -> Corpus:
        """The Corpus. Raises FileError where a line is bad and not skipped, or no line is left."""
        if self.errors and not self.skip_bad:
            first = self.errors[0]
            raise first if self.skipped == 1 else FileError("corpus-many", first=first, more=self.skipped - 1)
        if not self.lines:
            where = " + ".join(map(str, paths))
            raise FileError("corpus-nothing", path=where, skipped=self.skipped, first=self.errors[0])
        return Corpus(
            columns=self.columns,
            lines=self.lines,
            skipped=self.skipped,
            problems=tuple(str(error) for error in self.errors),
            name=" + ".join(path.name for path in paths),
            sha256=self.hash.hexdigest(),
            files=tuple(self.files),
        )


def read_pairs(
    paths: Paths, *, skip_bad: bool = False, columns: Sequence[int | str] | None = None, links: bool = False
) -> Corpus:
    """Pairs of sentences, from .tsv or .jsonl files, or from two plain files with corresponding lines.

    `columns` are the two columns of a table, counted from 1 (needed if it has more than two), or the two fields of a
    record (by default "source" and "target"). With `links`, a third column or field ("links") holds the word links of
    the pair, as `word_links` describes them; it may be empty. Raises FileError with the first bad line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.tsv")
    ...     _ = path.write_text("Hi.\\t你好。\\nno tab\\nBye.\\t再见。\\n", encoding="utf-8")
    ...     corpus = read_pairs(path, skip_bad=True)
    >>> corpus.columns, corpus.lines, corpus.skipped
    ((['Hi.', 'Bye.'], ['你好。', '再见。']), [1, 3], 1)
    """
    found = _path_list(paths)
    n_columns = 3 if links else 2
    if columns is not None and len(columns) != n_columns:
        raise ArgumentError("corpus-three-columns" if links else "corpus-two-columns", found=list(columns))
    reader = _Reader(skip_bad, n_columns)
    plain = [path for path in found if _suffix(path) not in TABLES + RECORDS]
    if links and plain:
        raise FileError("corpus-links-plain", path=str(plain[0]))
    if len(plain) == len(found) == 2:
        _add_parallel(reader, found[0], found[1])
        return reader.corpus(found)
    if plain and len(found) > 1:
        raise ArgumentError("corpus-two-files", found=Listed(found))
    fields = columns or ("source", "target", "links")[:n_columns]
    for path in found:
        parse = _record(*fields) if _suffix(path) in RECORDS else _table(n_columns, columns)
        reader.add_parsed(str(path), reader.lines_of(path), _with_links(parse) if links else parse)
    return reader.corpus(found)


def read_lines(paths: Paths, *, skip_bad: bool = False, column: int | str | None = None) -> Corpus:
    """Single lines, from plain files, one column of a .tsv (counted from 1), or one field of a .jsonl ("text").

    A blank line of a plain file is kept, so that line n of two parallel files still corresponds. Raises FileError with
    the first bad line.
    """
    found = _path_list(paths)
    reader = _Reader(skip_bad, 1)
    for path in found:
        if _suffix(path) in RECORDS:
            parse = _record(column or "text")
        elif _suffix(path) in TABLES:
            parse = _table(1, None if column is None else [column])
        else:
            lines = reader.lines_of(path)
            numbers = [number for number, line in enumerate(lines, 1) if isinstance(line, str)]
            reader.add_texts(str(path), reader.valid_lines(str(path), lines), numbers)
            continue
        reader.add_parsed(str(path), reader.lines_of(path), parse)
    return reader.corpus(found)


def read_text(paths: Paths, *, skip_bad: bool = False) -> Corpus:
    r"""Whole documents: each plain file and each record of a .jsonl is one. Line ends are kept as "\n"."""
    found = _path_list(paths)
    reader = _Reader(skip_bad, 1)
    for path in found:
        if _suffix(path) in RECORDS:
            reader.add_parsed(str(path), reader.lines_of(path), _record("text"))
            continue
        document = "\n".join(reader.valid_lines(str(path), reader.split_lines(path)))
        blank = not document or document.isspace()
        if blank and document:  # spaces that bytes.isspace does not find: U+3000, U+00A0
            reader.add_problem("corpus-empty", path=str(path))
        reader.add_texts(str(path), [] if blank else [document], [] if blank else [1])
    return reader.corpus(found)


# --- one line ---------------------------------------------------------------------------------------------


def _decoded(line: str | bytes) -> str | BadLineError:
    """A line as text, or an error that holds for any format."""
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError as error:
            return BadLineError("corpus-encoding", byte=error.start + 1, found=f"0x{line[error.start]:02X}")
    if len(line) > LONGEST_LINE:
        return BadLineError("corpus-long-line", found=f"{len(line):,}", most=f"{LONGEST_LINE:,}")
    if "\0" in line:
        return BadLineError("corpus-binary", place=line.index("\0") + 1)
    return line


def _table(wanted: int, columns: Sequence[int | str] | None) -> Parse:
    """A parser for a line of a table: the requested columns; without these, the line must have `wanted` columns."""
    places: list[int] = []
    for each in columns or ():
        if isinstance(each, str) or each < 1:
            raise ArgumentError("corpus-column", found=each)
        places.append(each - 1)

    names = [place + 1 for place in places] or range(1, wanted + 1)

    def parse(line: str) -> Sequence[str]:
        cells = line.split("\t")
        if not places and len(cells) != wanted:
            if not line.strip():
                raise BadLineError("corpus-empty-line")
            raise BadLineError("corpus-columns", found=len(cells), wanted=wanted)
        if places and max(places) >= len(cells):
            raise BadLineError("corpus-few-columns", found=len(cells), wanted=max(places) + 1)
        return _check_filled([cells[place] for place in places] if places else cells, names)

    return parse


def _record(*fields: int | str) -> Parse:
    """A parser for a line of JSON: the requested fields."""

    def parse(line: str) -> Sequence[str]:
        if not line.strip():
            raise BadLineError("corpus-empty-line")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadLineError("corpus-json", reason=reason_of(error)) from error
        if not isinstance(record, dict):
            raise BadLineError("corpus-no-record", found=type(record).__name__)
        for name in fields:
            if not isinstance(record.get(name), str):
                raise BadLineError("corpus-no-field", wanted=name, found=Listed(list(record)[:8]))
        row = tuple(record[name] for name in fields)
        try:
            "".join(row).encode()
        except UnicodeEncodeError as error:  # "\\ud800" is valid JSON and half a surrogate pair
            raise BadLineError("corpus-json", reason=reason_of(error)) from error
        return _check_filled(row, fields)

    return parse


def _with_links(parse: Parse) -> Parse:
    """The parser of a pair with links, which must name words of the pair."""

    def parse_and_check(line: str) -> Sequence[str]:
        source, target, links = parse(line)
        n_source, n_target = len(split_words(source)), len(split_words(target))
        if parse_links(links, n_source, n_target) is None:
            raise BadLineError("corpus-links", found=links[:60], n_source=n_source, n_target=n_target)
        return source, target, links

    return parse_and_check


def _check_filled(row: Sequence[str], names: Iterable[int | str]) -> Sequence[str]:
    """The row, unless one of its texts is blank; a third cell holds links, of which there may be none."""
    if not all(map(str.strip, row[:2])):
        empty = next(name for name, text in zip(names, row, strict=True) if not text.strip())
        raise BadLineError("corpus-empty-cell", column=empty)
    return row


# --- files ------------------------------------------------------------------------------------------------


def _add_parallel(reader: _Reader, left: Path, right: Path) -> None:
    """Add two plain files line by line. With different lengths it is unknown which line lacks its partner."""
    ours, theirs = reader.lines_of(left), reader.lines_of(right)
    if len(ours) != len(theirs):
        raise FileError("corpus-parallel", left=str(left), found=len(ours), right=str(right), other=len(theirs))
    pairs: list[tuple[str, str] | BadLineError] = [
        a if isinstance(a, BadLineError) else b if isinstance(b, BadLineError) else (a, b)
        for a, b in zip(ours, theirs, strict=True)
    ]
    reader.add_parsed(f"{left} + {right}", pairs, lambda pair: _check_filled(pair, (1, 2)))


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _path_list(paths: Paths) -> list[Path]:
    found = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not found:
        raise ArgumentError("corpus-no-files")
    for path in found:
        if _suffix(path) == ".json":
            raise FileError("corpus-json-file", path=str(path))
    return found


def _content(path: Path) -> bytes:
    return read_file(path, most=LARGEST_FILE)


Encoded = tuple[list[list[int]], ...]


def fitting(
    corpus: Corpus, ids: Sequence[list[list[int]]], *, max_len: int, skip_bad: bool = False
) -> tuple[Corpus, Encoded]:
    """The corpus and its ids without the lines that have more than `max_len` tokens, <bos> or <eos> included.

    With `skip_bad` longer lines are left out and counted in `corpus.skipped`; else FileError names the first one.
    """
    if any(len(column) != len(corpus) for column in ids):
        raise ArgumentError("fit-lengths", found=[len(column) for column in ids], lines=len(corpus))
    longest = [1 + max(map(len, row)) for row in zip(*ids, strict=True)]
    long = [i for i, length in enumerate(longest) if length > max_len]
    if not long:
        return corpus, tuple(ids)
    errors = [
        FileError("corpus-too-long", path=corpus.path(i), line=corpus.lines[i], found=longest[i], most=max_len)
        for i in long[:MOST_REPORTED]
    ]
    if len(long) == len(corpus) or not skip_bad:
        raise errors[0] if len(long) == 1 else FileError("corpus-many", first=errors[0], more=len(long) - 1)
    kept = [i for i, length in enumerate(longest) if length <= max_len]
    problems = (*corpus.problems, *map(str, errors))[:MOST_REPORTED]
    fit = replace(corpus.only(kept), skipped=corpus.skipped + len(long), problems=problems)
    return fit, tuple([column[i] for i in kept] for column in ids)
