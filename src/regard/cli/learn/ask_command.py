"""`regard learn ask`: an interview question, its answers, and a self-rating."""

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.learn.question_dialogue import (
    answers_text,
    folded,
    is_terminal,
    links,
    parsed_rating,
    question_json,
    save_rating,
    typed,
    typed_rating,
)
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import say

if TYPE_CHECKING:
    from regard.course.progress import Progress, ProgressFile, Rating
    from regard.course.questions.bank import Question


def ask(
    id: Annotated[str | None, typer.Argument(metavar="metavar-question", help="help-question")] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="help-reveal")] = False,
    rating: Annotated[str | None, typer.Option("--rate", metavar="metavar-rating", help="help-rate")] = None,
    listed: Annotated[bool, typer.Option("--list", help="help-ask-list")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    from regard.course.progress import ProgressFile

    progress_file = ProgressFile(report=print_message)
    if listed:
        _list(progress_file.read(), as_json)
        return
    if rating is not None and id is None:
        raise ArgumentError("rate-which")
    rated = None if rating is None else parsed_rating(rating)
    question = _chosen(id, progress_file.read())
    if question is None:
        _nothing_due(progress_file.read(), as_json)
    elif rated is not None:
        _rate(progress_file, question, rated, as_json)
    elif as_json:
        write_json(question_json(question, progress_file.read().questions.get(question.id), reveal))
    elif reveal:
        put(f"{_question_text(question)}\n\n{answers_text(question)}")
    elif is_terminal():
        _ask_interactively(progress_file, question)
    else:
        put(_question_text(question), flush=True)
        print_message(say("ask-how", question=question.id))


def _chosen(id: str | None, progress: "Progress") -> "Question | None":
    """The requested question, or the next one; None if none is due."""
    from regard.course.questions.bank import next_question, question, questions

    if id is not None:
        return question(id)
    next_id = next_question([one.id for one in questions()], progress.questions, date.today())
    return None if next_id is None else question(next_id)


def _ask_interactively(progress_file: "ProgressFile", question: "Question") -> None:
    """Show the question, the answers, and ask for a rating. Ctrl-D ends it at any point without a rating."""
    text = question.text()
    put(_question_text(question))
    if typed(say("ask-think")) is None:
        return
    put(folded(text.short))
    if typed(say("ask-deeper")) is None:
        return
    put(f"{folded(text.deep)}\n\n{links(question)}")
    if (rating := typed_rating()) is not None:
        _rate(progress_file, question, rating, as_json=False)


def _question_text(question: "Question") -> str:
    return f"[{question.id}] {say('learn-lesson-short', number=question.lesson)}\n\n{folded(question.text().ask)}"


def _list(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions.bank import questions

    if as_json:
        write_json({"questions": [question_json(one, progress.questions.get(one.id), False) for one in questions()]})
        return
    longest = max(len(one.id) for one in questions())
    for one in questions():
        card = progress.questions.get(one.id)
        put(f"{' ' * 10 if card is None else card.due}  {one.id:{longest}}  {one.text().ask}")


def _rate(progress_file: "ProgressFile", question: "Question", rating: "Rating", as_json: bool) -> None:
    card = save_rating(progress_file, question, rating)
    if as_json:
        write_json(question_json(question, card, reveal=False))
    elif progress_file.is_saved:
        print_message(say("ask-again-today" if rating == "again" else "ask-again-on", day=card.due))


def _nothing_due(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions.bank import next_day, questions

    day = next_day([one.id for one in questions()], progress.questions)
    if as_json:
        write_json({"id": None, "next_day": day})
    else:
        print_message(say("ask-nothing-due", day=day))
