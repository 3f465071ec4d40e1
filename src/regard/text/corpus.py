"""Text files read line by line, with every bad line named, and the lines that fit into a model."""

import hashlib
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.output import reason_of
from regard.messages import Listed

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Parse: TypeAlias = Callable[[str], Iterable[str]]
Item = TypeVar("Item")

LARGEST_FILE = 2**32
"""In bytes; a text is held in memory, some four times as large."""
LONGEST_LINE = 2**20
TOLD = 5  # problems that are put into words; the rest are counted
TABLES, RECORDS = (".tsv", ".tab"), (".jsonl", ".ndjson")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Lines of text, one column or two, and where each comes from.

    columns     one list of texts for each column, all of one length
    lines       the number of each line in its file, from 1
    skipped     how many were left out as bad, and
    problems    the first few reasons, as they are said
    name        the files, for people; `sha256` is that of their bytes
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
        """These lines, whose numbers rise, and no others."""
        return replace(
            self,
            columns=tuple([column[i] for i in kept] for column in self.columns),
            lines=[self.lines[i] for i in kept],
            files=tuple((name, bisect_left(kept, end)) for name, end in self.files),
        )

    def path(self, i: int) -> str:
        """The file that line `i` of the columns comes from."""
        return self.files[bisect_right([end for _, end in self.files], i)][0]


class BadLineError(Exception):
    """What is wrong with a line; where it stands is known to who reads the file."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key, self.values = key, values


@dataclass
class _Reading:
    """A corpus while it is read."""

    skip_bad: bool
    n_columns: int
    columns: tuple[list[str], ...] = field(init=False)
    lines: list[int] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)
    errors: list[FileError] = field(default_factory=list)
    skipped: int = 0

    def __post_init__(self) -> None:
        self.columns = tuple([] for _ in range(self.n_columns))
        self.hashed = hashlib.sha256()

    def complain(self, key: str, **values: object) -> None:
        """Remember what is wrong, or count it."""
        self.skipped += 1
        if len(self.errors) < TOLD:
            self.errors.append(FileError(key, **values))

    def lines_of(self, path: Path) -> "list[str | BadLineError]":
        """The lines of a file, or what is wrong with them."""
        found = self.split(path)
        return found[:-1] if found and found[-1] == "" else found  # a last line has an end, too

    def split(self, path: Path) -> "list[str | BadLineError]":
        """What stands between the line ends of a file; the last of it may be nothing."""
        content = _content(path)
        self.hashed.update(content)
        content = content.removeprefix(b"\xef\xbb\xbf")
        if not content or content.isspace():
            self.complain("corpus-empty", path=str(path))
            return []
        try:
            lines = content.decode().replace("\r\n", "\n").split("\n")
        except UnicodeDecodeError:
            return [_sound(line) for line in content.replace(b"\r\n", b"\n").split(b"\n")]
        if b"\0" in content or max(map(len, lines)) > LONGEST_LINE:
            return [_sound(line) for line in lines]
        return [*lines]

    def take(self, path: str, items: "Sequence[Item | BadLineError]", parse: Callable[[Item], Iterable[str]]) -> None:
        """Add the lines of a file, each as what `parse` makes of it."""
        for number, item in enumerate(items, 1):
            try:
                if isinstance(item, BadLineError):
                    raise item
                for column, value in zip(self.columns, parse(item), strict=True):
                    column.append(value)
                self.lines.append(number)
            except BadLineError as bad:
                self.complain(bad.key, path=path, line=number, **bad.values)
        self.files.append((path, len(self.lines)))

    def good(self, path: str, lines: "Sequence[str | BadLineError]") -> list[str]:
        """The good ones of these lines, the others complained about."""
        good = [line for line in lines if isinstance(line, str)]
        if len(good) < len(lines):
            for number, line in enumerate(lines, 1):
                if isinstance(line, BadLineError):
                    self.complain(line.key, path=path, line=number, **line.values)
        return good

    def add(self, path: str, texts: list[str], numbers: list[int]) -> None:
        """Add texts that need no further look."""
        self.columns[0].extend(texts)
        self.lines.extend(numbers)
        self.files.append((path, len(self.lines)))

    def corpus(self, paths: Sequence[Path]) -> Corpus:
        """What was read. FileError where something was bad, or nothing is left."""
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
            sha256=self.hashed.hexdigest(),
            files=tuple(self.files),
        )


def read_pairs(paths: Paths, *, skip_bad: bool = False, columns: Sequence[int | str] | None = None) -> Corpus:
    """Pairs of sentences: from .tsv or .jsonl files, or from two plain files whose lines belong together.

    `columns` are the two columns of a table, counted from 1 (where it has more than two), or the two fields of a record
    ("source" and "target" unless told). FileError names the first bad line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pairs.tsv")
    ...     _ = path.write_text("Hi.\\t你好。\\nno tab\\nBye.\\t再见。\\n", encoding="utf-8")
    ...     corpus = read_pairs(path, skip_bad=True)
    >>> corpus.columns, corpus.lines, corpus.skipped
    ((['Hi.', 'Bye.'], ['你好。', '再见。']), [1, 3], 1)
    """
    found = _listed(paths)
    if columns is not None and len(columns) != 2:
        raise ArgumentError("corpus-two-columns", found=list(columns))
    reading = _Reading(skip_bad, 2)
    plain = [path for path in found if _suffix(path) not in TABLES + RECORDS]
    if len(plain) == len(found) == 2:
        _take_parallel(reading, found[0], found[1])
        return reading.corpus(found)
    if plain and len(found) > 1:
        raise ArgumentError("corpus-two-files", found=Listed(found))
    for path in found:
        parse = _record(*(columns or ("source", "target"))) if _suffix(path) in RECORDS else _table(2, columns)
        reading.take(str(path), reading.lines_of(path), parse)
    return reading.corpus(found)


def read_lines(paths: Paths, *, skip_bad: bool = False, column: int | str | None = None) -> Corpus:
    """Single lines: of plain files, of one column of a .tsv (counted from 1), or of a field of a .jsonl ("text").

    A blank line of a plain file is a text, too, so that line n of one file stays beside line n of another. FileError
    names the first bad line.
    """
    found = _listed(paths)
    reading = _Reading(skip_bad, 1)
    for path in found:
        if _suffix(path) in RECORDS:
            parse = _record(column or "text")
        elif _suffix(path) in TABLES:
            parse = _table(1, None if column is None else [column])
        else:
            lines = reading.lines_of(path)
            numbers = [number for number, line in enumerate(lines, 1) if isinstance(line, str)]
            reading.add(str(path), reading.good(str(path), lines), numbers)
            continue
        reading.take(str(path), reading.lines_of(path), parse)
    return reading.corpus(found)


def read_text(paths: Paths, *, skip_bad: bool = False) -> Corpus:
    r"""Whole documents: each plain file one, each record of a .jsonl one. Line ends are kept, each as "\n"."""
    found = _listed(paths)
    reading = _Reading(skip_bad, 1)
    for path in found:
        if _suffix(path) in RECORDS:
            reading.take(str(path), reading.lines_of(path), _record("text"))
            continue
        document = "\n".join(reading.good(str(path), reading.split(path)))
        blank = not document or document.isspace()
        if blank and document:  # spaces that bytes do not know as such: U+3000, U+00A0
            reading.complain("corpus-empty", path=str(path))
        reading.add(str(path), [] if blank else [document], [] if blank else [1])
    return reading.corpus(found)


# --- one line ---------------------------------------------------------------------------------------------


def _sound(line: str | bytes) -> str | BadLineError:
    """A line as text, or what is wrong with it whatever it is part of."""
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
    """A line of a table as the columns asked for; without such, it has as many as are wanted."""
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
        return _filled([cells[place] for place in places] if places else cells, names)

    return parse


def _record(*fields: int | str) -> Parse:
    """A line of JSON as the fields asked for."""

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
        except UnicodeEncodeError as error:  # "\\ud800" is good JSON and half a character
            raise BadLineError("corpus-json", reason=reason_of(error)) from error
        return _filled(row, fields)

    return parse


def _filled(row: Sequence[str], names: Iterable[int | str]) -> Sequence[str]:
    if not all(map(str.strip, row)):
        empty = next(name for name, text in zip(names, row, strict=True) if not text.strip())
        raise BadLineError("corpus-empty-cell", column=empty)
    return row


# --- files ------------------------------------------------------------------------------------------------


def _take_parallel(reading: _Reading, left: Path, right: Path) -> None:
    """Two plain files, line by line. Where they do not end together nobody knows which line lacks its partner."""
    ours, theirs = reading.lines_of(left), reading.lines_of(right)
    if len(ours) != len(theirs):
        raise FileError("corpus-parallel", left=str(left), found=len(ours), right=str(right), other=len(theirs))
    pairs: list[tuple[str, str] | BadLineError] = [
        a if isinstance(a, BadLineError) else b if isinstance(b, BadLineError) else (a, b)
        for a, b in zip(ours, theirs, strict=True)
    ]
    reading.take(f"{left} + {right}", pairs, lambda pair: _filled(pair, (1, 2)))


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _listed(paths: Paths) -> list[Path]:
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
    """The corpus and its ids, column by column, where every line with its <bos> or <eos> has at most `max_len` tokens.

    FileError names the first longer line and counts the others; with `skip_bad` they are left out, their number added
    to `corpus.skipped`.
    """
    if any(len(column) != len(corpus) for column in ids):
        raise ArgumentError("fit-lengths", found=[len(column) for column in ids], lines=len(corpus))
    longest = [1 + max(map(len, row)) for row in zip(*ids, strict=True)]
    long = [i for i, length in enumerate(longest) if length > max_len]
    if not long:
        return corpus, tuple(ids)
    errors = [
        FileError("corpus-too-long", path=corpus.path(i), line=corpus.lines[i], found=longest[i], most=max_len)
        for i in long[:TOLD]
    ]
    if len(long) == len(corpus) or not skip_bad:
        raise errors[0] if len(long) == 1 else FileError("corpus-many", first=errors[0], more=len(long) - 1)
    kept = [i for i, length in enumerate(longest) if length <= max_len]
    problems = (*corpus.problems, *map(str, errors))[:TOLD]
    fit = replace(corpus.only(kept), skipped=corpus.skipped + len(long), problems=problems)
    return fit, tuple([column[i] for i in kept] for column in ids)
