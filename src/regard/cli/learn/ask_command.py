"""`regard learn ask`: a question to think about, its answers, and how well it went."""

import sys
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.help_page import WIDEST, fold
from regard.cli.streams import put, talk, write_json
from regard.errors import ArgumentError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.progress import Card, Progress, ProgressFile, Rating
    from regard.course.questions.bank import Question

SPELLINGS: "dict[str, Rating]" = {"1": "again", "2": "unsure", "3": "good", "１": "again", "２": "unsure", "３": "good"}
"""Ratings as they are typed, beside their names."""


def ask(
    id: Annotated[str | None, typer.Argument(metavar="metavar-question", help="help-question")] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="help-reveal")] = False,
    rating: Annotated[str | None, typer.Option("--rate", metavar="metavar-rating", help="help-rate")] = None,
    listed: Annotated[bool, typer.Option("--list", help="help-ask-list")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    book = ProgressFile(tell=talk)
    if listed:
        _list(book.read(), as_json)
        return
    if rating is not None and id is None:
        raise ArgumentError("rate-which")
    rated = None if rating is None else _rating(rating)
    question = _chosen(id, book.read())
    if question is None:
        _nothing_due(book.read(), as_json)
    elif rated is not None:
        _rate(book, question, rated, as_json)
    elif as_json:
        write_json(_as_json(question, book.read().questions.get(question.id), reveal))
    elif reveal:
        put(f"{_asked(question)}\n\n{_answers(question)}")
    elif sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        _talk_through(book, question)
    else:
        put(_asked(question), flush=True)
        talk(say("ask-how", question=question.id))


def _chosen(id: str | None, progress: "Progress") -> "Question | None":
    """The one that was asked for, or the next in turn; None where all can wait."""
    from regard.course.questions.bank import next_question, question, questions

    if id is not None:
        return question(id)
    turn = next_question([one.id for one in questions()], progress.questions, date.today())
    return None if turn is None else question(turn)


def _rating(text: str) -> "Rating":
    from regard.course.progress import RATINGS

    for known in RATINGS:
        if SPELLINGS.get(text.strip(), text.strip().lower()) == known:
            return known
    raise ArgumentError("rate-unknown", found=text)


# --- at a terminal -----------------------------------------------------------------------------------------


def _talk_through(book: "ProgressFile", question: "Question") -> None:
    """Think, look, rate. Ctrl-D ends it at any place, unrated."""
    told = question.told()
    put(_asked(question))
    if _typed(say("ask-think")) is None:
        return
    put(_folded(told.short))
    if _typed(say("ask-deeper")) is None:
        return
    put(f"{_folded(told.deep)}\n\n{_links(question)}")
    while (typed := _typed(say("ask-rate"))) is not None:
        try:
            _rate(book, question, _rating(typed), as_json=False)
            return
        except ArgumentError as error:
            talk(error.text())


def _typed(prompt: str) -> str | None:
    """A line from the keyboard; None at its end."""
    try:
        return input(f"\n{prompt} ")
    except EOFError:
        put()
        return None


# --- what is shown -----------------------------------------------------------------------------------------


def _asked(question: "Question") -> str:
    return f"[{question.id}] {say('learn-lesson-short', number=question.lesson)}\n\n{_folded(question.told().ask)}"


def _answers(question: "Question") -> str:
    told = question.told()
    return f"{_folded(told.short)}\n\n{_folded(told.deep)}\n\n{_links(question)}"


def _links(question: "Question") -> str:
    """Where to go on: the experiment, the lesson if there is one, the exercise."""
    from regard.course.lessons.index import lessons

    code = "\n".join(f"    {line}".rstrip() for line in question.experiment.strip().splitlines())
    commands = [f"regard learn read {one.number}" for one in lessons() if one.number == question.lesson]
    more = " · ".join([*commands, f"regard learn start {question.exercise}"])
    return f"{say('ask-experiment')}\n\n{code}\n\n{say('ask-links', commands=more)}"


def _folded(text: str) -> str:
    """Paragraphs as wide as the terminal; indented lines and lists keep their lines."""
    import shutil

    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n".join(line if line.startswith(" ") else "\n".join(fold(line, width)) for line in text.splitlines())


def _list(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions.bank import questions

    if as_json:
        write_json({"questions": [_as_json(one, progress.questions.get(one.id), False) for one in questions()]})
        return
    longest = max(len(one.id) for one in questions())
    for one in questions():
        card = progress.questions.get(one.id)
        put(f"{' ' * 10 if card is None else card.due}  {one.id:{longest}}  {one.told().ask}")


def _as_json(question: "Question", card: "Card | None", reveal: bool) -> dict[str, Any]:
    from dataclasses import asdict

    told = question.told()
    about = {"id": question.id, "lesson": question.lesson, "exercise": question.exercise, "ask": told.ask}
    answers = {"short": told.short, "deep": told.deep, "experiment": question.experiment} if reveal else {}
    return about | answers | {"card": None if card is None else asdict(card)}


# --- what is kept ------------------------------------------------------------------------------------------


def _rate(book: "ProgressFile", question: "Question", rating: "Rating", as_json: bool) -> None:
    from regard.course.questions.bank import rate

    after = book.change(
        lambda progress: progress.with_card(
            question.id, rate(progress.questions.get(question.id), rating, date.today())
        )
    )
    card = after.questions[question.id]
    if as_json:
        write_json(_as_json(question, card, reveal=False))
        return
    if book.is_kept:
        talk(say("ask-again-today" if rating == "again" else "ask-again-on", day=card.due))


def _nothing_due(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions.bank import next_day, questions

    day = next_day([one.id for one in questions()], progress.questions)
    if as_json:
        write_json({"id": None, "next_day": day})
    else:
        talk(say("ask-nothing-due", day=day))
