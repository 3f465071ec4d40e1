"""What a certificate says: the passed exercises with their answers, and counts; collected here, or read from a page.

A page from elsewhere is untrusted: bounded, parsed strictly, and nothing of it is run here.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.course.catalogue import entries
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import Progress, timestamp
from regard.course.study_path import steps
from regard.errors import ArgumentError, FileError
from regard.files.input import read_file
from regard.files.json_and_toml import JsonError, parse_json
from regard.messages import LANGUAGES, Language, language
from regard.printable import one_line

FORMAT, VERSION = "regard-certificate", 1
LARGEST = 2**25
"""In bytes, of a page."""
LONGEST_NAME = 80
"""In characters."""
MOST = 1000
"""Items of a page."""
START, END = '<script type="application/json" id="certificate">', "</script>"


@dataclass(frozen=True)
class Item:
    """One passed exercise."""

    id: str
    passed_at: str
    answer: str | None
    """The program or sheet that passed; None if it was passed before answers were kept."""
    sha256: str | None
    """Of the answer in UTF-8."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The content of a page."""

    name: str
    written_at: str
    regard: str
    """The version that wrote it."""
    language: Language
    items: tuple[Item, ...]
    counts: Mapping[str, tuple[int, int]]
    """(done, all) of "lesson", "exercise" and "question"."""
    minutes: int
    """The estimated time of what is done."""

    def as_json(self) -> str:
        """The data in the page; without the signs that could end an HTML element."""
        data = {"format": FORMAT, "version": VERSION, **asdict(self)}
        text = json.dumps(data, ensure_ascii=False, indent=0)
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def collect(progress: Progress, answers: PassedAnswers, name: str) -> Certificate:
    """The certificate of this progress. Raises ArgumentError if nothing is passed, or the name is too long."""
    from regard import __version__

    clean = " ".join(one_line(name).split())
    if len(clean) > LONGEST_NAME:
        raise ArgumentError("certificate-name", found=len(clean), most=LONGEST_NAME)
    items = tuple(_item(row.id, progress, answers) for row in entries() if progress.passed(row.id))
    if not items:
        raise ArgumentError("certificate-nothing")
    path = steps(progress)
    kinds = ("lesson", "exercise", "question")
    counts = {kind: [step.is_done for step in path if step.kind == kind] for kind in kinds}
    return Certificate(
        name=clean,
        written_at=timestamp(),
        regard=__version__,
        language=language(),
        items=items,
        counts={kind: (sum(done), len(done)) for kind, done in counts.items()},
        minutes=round(sum(step.minutes for step in path if step.is_done)),
    )


def _item(id: str, progress: Progress, answers: PassedAnswers) -> Item:
    content, passed_at = answers.read(id), progress.work(id).passed_at
    assert passed_at is not None
    try:
        answer = None if content is None else content.decode()
    except UnicodeDecodeError:  # changed by hand since: it cannot be run again
        answer = None
    return Item(id, passed_at, answer, None if answer is None else digest(answer))


def digest(answer: str) -> str:
    """The SHA-256 of an answer, in hexadecimal."""
    return sha256(answer.encode()).hexdigest()


# --- reading -----------------------------------------------------------------------------------------------


def read_certificate(path: Path) -> tuple[Certificate, str]:
    """The content of a page and its whole text. Raises FileError if it is not such a page, or damaged."""
    try:
        text = read_file(path, most=LARGEST).decode()
    except UnicodeDecodeError as error:
        raise FileError("certificate-other", path=str(path)) from error
    _, found, rest = text.partition(START)
    if not found or END not in rest:
        raise FileError("certificate-other", path=str(path))
    try:
        data = parse_json(rest.partition(END)[0].encode())
        if data["format"] == FORMAT and type(data["version"]) is int and data["version"] > VERSION:
            raise FileError("certificate-newer", path=str(path))
        return _certificate(data), text
    except JsonError as error:
        raise FileError("certificate-damaged", path=str(path), where=str(error)) from error
    except FileError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError("certificate-damaged", path=str(path), where="items") from error


def _certificate(data: Any) -> Certificate:
    _require((data["format"], data["version"]) == (FORMAT, VERSION) and type(data["version"]) is int)
    texts = [data[name] for name in ("name", "written_at", "regard", "language")]
    _require(all(isinstance(text, str) and len(text) <= LONGEST_NAME for text in texts))
    _require(data["language"] in LANGUAGES and type(data["minutes"]) is int)
    _require(isinstance(data["items"], list) and len(data["items"]) <= MOST)
    counts = {str(kind): (int(done), int(count)) for kind, (done, count) in data["counts"].items()}
    known = {name: data[name] for name in ("name", "written_at", "regard", "language", "minutes")}
    return Certificate(items=tuple(map(_read_item, data["items"])), counts=counts, **known)


def _read_item(data: Any) -> Item:
    item = Item(**{name: data[name] for name in Item.__dataclass_fields__})
    _require(isinstance(item.id, str) and isinstance(item.passed_at, str))
    _require(0 < len(item.id) <= LONGEST_NAME and len(item.passed_at) <= LONGEST_NAME)
    _require(all(text is None or isinstance(text, str) for text in (item.answer, item.sha256)))
    if item.answer is not None:
        item.answer.encode()  # half a character is refused
    return item


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError
