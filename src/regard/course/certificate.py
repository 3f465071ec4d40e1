"""The certificate: the passed exercises with their answers, as one HTML page; and `verify`, which grades them again.

The page is for screen and paper: no script, nothing loaded, every text escaped. A page from elsewhere is untrusted:
bounded, parsed strictly, and its answers run only in the sandbox.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from regard.course.catalogue import entries, exercise
from regard.course.exercise import Entry
from regard.course.grading.grader import grade
from regard.course.lessons import lessons
from regard.course.passed_answers import PassedAnswers
from regard.course.progress import Progress, timestamp
from regard.course.study_path import steps
from regard.errors import ArgumentError, FileError
from regard.files.json_and_toml import JsonError, parse_json
from regard.files.safe_open import read_file
from regard.messages import LANGUAGES, Language, language, one_line, say, use_language

FORMAT, VERSION = "regard-certificate", 1
LARGEST = 2**25
"""In bytes, of a page."""
LONGEST_NAME = 80
"""In characters."""
MOST = 1000
"""Items of a page."""
START, END = '<script type="application/json" id="certificate">', "</script>"


@dataclass(frozen=True)
class PassedItem:
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
    items: tuple[PassedItem, ...]
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


def _item(id: str, progress: Progress, answers: PassedAnswers) -> PassedItem:
    content, passed_at = answers.read(id), progress.work(id).passed_at
    assert passed_at is not None
    try:
        answer = None if content is None else content.decode()
    except UnicodeDecodeError:  # changed by hand since: it cannot be run again
        answer = None
    return PassedItem(id, passed_at, answer, None if answer is None else digest(answer))


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


def _read_item(data: Any) -> PassedItem:
    item = PassedItem(**{name: data[name] for name in PassedItem.__dataclass_fields__})
    _require(isinstance(item.id, str) and isinstance(item.passed_at, str))
    _require(0 < len(item.id) <= LONGEST_NAME and len(item.passed_at) <= LONGEST_NAME)
    _require(all(text is None or isinstance(text, str) for text in (item.answer, item.sha256)))
    if item.answer is not None:
        item.answer.encode()  # half a character is refused
    return item


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHOWN = 16
"""Hexadecimal digits of a hash on the page; the data has all 64."""
COLUMNS = ("title", "id", "day", "hash")
CELL, GAP = 11, 3
"""Sizes in the picture, in pixels."""


def page(certificate: Certificate) -> str:
    """The whole page, in the language of the certificate."""
    style = (files("regard.course") / "certificate.css").read_text(encoding="utf-8")
    allowed = "sha256-" + b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src '{allowed}'; base-uri 'none'; form-action 'none'"
    with use_language(certificate.language):
        body = "\n".join(_body(certificate))
        title = " · ".join(filter(None, [say("certificate-title"), certificate.name]))
    return f"""<!DOCTYPE html>
<html lang="{"zh-CN" if certificate.language == "zh" else "en"}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{START}{certificate.as_json()}{END}
</body>
</html>
"""


def _body(certificate: Certificate) -> Iterator[str]:
    (passed, count), (read, all_lessons), (answered, all_questions) = (
        certificate.counts[kind] for kind in ("exercise", "lesson", "question")
    )
    yield "<header>"
    yield f'<p class="course">{say("certificate-course")}</p>'
    yield f"<h1>{say('certificate-title')}</h1>"
    if certificate.name:
        yield f'<p class="name">{escape(certificate.name)}</p>'
    days = sorted(item.passed_at for item in certificate.items)
    span = {"first": _day(days[0]), "last": _day(days[-1])}
    key = "certificate-one-day" if span["first"] == span["last"] else "certificate-days"
    yield f'<p class="claim">{say("certificate-claim", passed=passed, count=count)}{say(key, **span)}</p>'
    yield "</header>"
    yield '<section class="sum">'
    yield _picture(certificate)
    yield "<dl>"
    for name, done, total in (
        ("exercises", passed, count),
        ("lessons", read, all_lessons),
        ("questions", answered, all_questions),
    ):
        yield f"<div><dt>{say(f'certificate-{name}')}</dt><dd>{done}<small> / {total}</small></dd></div>"
    time = say("path-hours", hours=max(1, round(certificate.minutes / 60)))
    yield f"<div><dt>{say('certificate-time')}</dt><dd>{time}</dd></div>"
    yield "</dl>"
    yield "</section>"
    yield from _table(certificate)
    yield "<footer>"
    for key in ("certificate-what", "certificate-again"):
        yield f"<p>{say(key)}</p>"
    yield f"<pre>regard learn certificate --verify {say('metavar-certificate')}</pre>"
    yield f"<p>{say('certificate-one')}</p>"
    made = say("certificate-made", regard=certificate.regard, day=_day(certificate.written_at))
    yield f'<p class="made">{escape(made)}</p>'
    yield "</footer>"


def _table(certificate: Certificate) -> Iterator[str]:
    """The passed exercises, lesson by lesson. The heading of the columns is repeated on every printed page."""
    rows = {row.id: row for row in entries()}
    titles = {lesson.number: getattr(lesson.title, certificate.language) for lesson in lessons()}
    found: dict[int, list[tuple[Entry, PassedItem]]] = {}
    for item in certificate.items:
        if item.id in rows:
            found.setdefault(rows[item.id].lesson, []).append((rows[item.id], item))
    head = "".join(f'<th scope="col">{say(f"certificate-column-{name}")}</th>' for name in COLUMNS)
    yield f"<table><colgroup>{''.join(f'<col class={name}>' for name in COLUMNS)}</colgroup>"
    yield f"<thead><tr>{head}</tr></thead>"
    for number in sorted(found):
        lesson = f"<span>{say('learn-lesson-short', number=number)}</span> {escape(titles.get(number, ''))}"
        yield f'<tbody><tr><th class="lesson" scope="rowgroup" colspan="{len(COLUMNS)}">{lesson}</th></tr>'
        for row, item in found[number]:
            answer = item.sha256[:SHOWN] if item.sha256 else say("certificate-no-answer")
            yield f"<tr><td>{escape(getattr(row.title, certificate.language))}</td>"
            yield f'<td><code class="id">{escape(item.id)}</code></td><td class="day">{_short(item.passed_at)}</td>'
            yield f"<td><code>{escape(answer)}</code></td></tr>"
        yield "</tbody>"
    yield "</table>"


def _picture(certificate: Certificate) -> str:
    """A row of squares for each lesson, one for each exercise; those that were passed are filled."""
    passed = {item.id for item in certificate.items}
    numbers = sorted({row.lesson for row in entries()})
    step, squares = CELL + GAP, []
    for y, number in enumerate(numbers):
        for x, row in enumerate(one for one in entries() if one.lesson == number):
            kind = "done" if row.id in passed else "open"
            place = f'x="{x * step + 0.5}" y="{y * step + 0.5}" width="{CELL}" height="{CELL}"'
            squares.append(f'<rect class="{kind}" {place} rx="2"/>')
    widest = max(sum(row.lesson == number for row in entries()) for number in numbers)
    size = f'width="{widest * step}" height="{len(numbers) * step}" viewBox="0 0 {widest * step} {len(numbers) * step}"'
    label = say("certificate-picture", passed=len(passed), count=len(entries()))
    return f'<svg role="img" aria-label="{escape(label)}" {size}>{"".join(squares)}</svg>'


def _day(at: str) -> str:
    """The day of a time in words, in UTC, so that the page is the same on every computer."""
    day = datetime.fromisoformat(at)
    month = day.month if language() == "zh" else MONTHS[day.month - 1]
    return say("certificate-day", day=day.day, month=month, year=day.year)


def _short(at: str) -> str:
    return datetime.fromisoformat(at).date().isoformat()


Outcome = Literal["passes", "fails", "changed", "no-answer", "unknown", "no-torch"]


@dataclass(frozen=True)
class Checked:
    """One item, and what became of it when it was run again."""

    item: PassedItem
    outcome: Outcome
    reason: str = ""
    """The diagnosis of an answer that fails."""


def verify(certificate: Certificate) -> Iterator[Checked]:
    """Run every item again, on new data."""
    known = {row.id: row for row in entries()}
    for item in certificate.items:
        row = known.get(item.id)
        if row is None:
            yield Checked(item, "unknown")
        elif item.answer is None:
            yield Checked(item, "no-answer")
        elif digest(item.answer) != item.sha256:
            yield Checked(item, "changed")
        elif row.track == "torch" and row.kind != "sheet" and find_spec("torch") is None:
            yield Checked(item, "no-torch")
        else:
            verdict = grade(exercise(item.id), item.answer)
            yield Checked(item, "passes" if verdict.passed else "fails", verdict.diagnosis or "")
