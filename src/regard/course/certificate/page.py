"""A certificate as one HTML page for screen and paper: no script, nothing loaded, every text escaped."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from html import escape
from importlib.resources import files

from regard.course.catalogue import entries
from regard.course.certificate.contents import END, START, Certificate, Item
from regard.course.exercise import Entry
from regard.course.lessons.index import lessons
from regard.messages import language, say, use_language

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
    style = (files("regard.course.certificate") / "page.css").read_text(encoding="utf-8")
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
    found: dict[int, list[tuple[Entry, Item]]] = {}
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
