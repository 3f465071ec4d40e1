"""`regard learn ask` and `interview`: questions on a terminal, self-rated; singly, or as a timed mock interview."""

import re
import time
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.arguments import whole_number
from regard.cli.streams import WIDEST, print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import Listed, say
from regard.views.labels import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.course.progress import Card, Progress, ProgressFile, Rating
    from regard.course.questions import Question, RatedAnswer

SPELLINGS: "dict[str, Rating]" = {"1": "again", "2": "unsure", "3": "good", "１": "again", "２": "unsure", "３": "good"}
"""Short spellings of the ratings."""


def is_terminal() -> bool:
    """Whether a person can read the output and type an answer."""
    import sys

    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


# --- output ------------------------------------------------------------------------------------------------


def answers_text(question: "Question") -> str:
    """Both answers, the experiment, and what to do next."""
    text = question.text()
    return f"{folded(text.short)}\n\n{folded(text.deep)}\n\n{links(question)}"


def links(question: "Question") -> str:
    """What to do next: the experiment, the lesson if there is one, the exercise."""
    code = "\n".join(f"    {line}".rstrip() for line in question.experiment.strip().splitlines())
    more = " · ".join(study_commands([question.lesson], [question.exercise]))
    return f"{say('ask-experiment')}\n\n{code}\n\n{say('ask-links', commands=more)}"


def study_commands(numbers: "list[int]", exercises: "list[str]") -> list[str]:
    """The commands that open these lessons, where their text exists, and start these exercises."""
    from regard.course.lessons import lessons

    reads = [f"regard learn read {one.number}" for one in lessons() if one.number in numbers]
    return [*reads, *(f"regard learn start {exercise}" for exercise in exercises)]


def folded(text: str) -> str:
    """Paragraphs wrapped to the terminal; indented lines keep their line breaks."""
    import shutil

    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "\n".join(line if line.startswith(" ") else "\n".join(fold(line, width)) for line in text.splitlines())


def question_json(question: "Question", card: "Card | None", reveal: bool) -> dict[str, Any]:
    """The question and its card; the answers only with `reveal`."""
    from dataclasses import asdict

    text = question.text()
    about = {"id": question.id, "topic": question.topic, "level": question.level, "lesson": question.lesson}
    about |= {"exercise": question.exercise, "ask": text.ask}
    answers = {"short": text.short, "deep": text.deep, "experiment": question.experiment} if reveal else {}
    return about | answers | {"card": None if card is None else asdict(card)}


# --- input and progress ------------------------------------------------------------------------------------


def typed(prompt: str) -> str | None:
    """A line from the keyboard; None at end of file."""
    try:
        return input(f"\n{prompt} ")
    except EOFError:
        put()
        return None


def typed_rating() -> "Rating | None":
    """A rating from the keyboard, asked for until it is valid; None at end of file."""
    while (text := typed(say("ask-rate"))) is not None:
        try:
            return parsed_rating(text)
        except ArgumentError as error:
            print_message(error.text())
    return None


def parsed_rating(text: str) -> "Rating":
    """The rating with this name or number."""
    from regard.course.progress import RATINGS

    for known in RATINGS:
        if SPELLINGS.get(text.strip(), text.strip().lower()) == known:
            return known
    raise ArgumentError("rate-unknown", found=text)


def save_rating(progress_file: "ProgressFile", question: "Question", rating: "Rating") -> "Card":
    """Store the rating and return the new card."""
    from regard.course.questions import rate

    after = progress_file.change(
        lambda progress: progress.with_card(
            question.id, rate(progress.questions.get(question.id), rating, date.today())
        )
    )
    return after.questions[question.id]


# --- ask ---------------------------------------------------------------------------------------------------


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
        _list_questions(progress_file.read(), as_json)
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
    from regard.course.questions import next_question, question, questions

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


def _list_questions(progress: "Progress", as_json: bool) -> None:
    from regard.course.questions import questions

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
    from regard.course.questions import next_day, questions

    day = next_day([one.id for one in questions()], progress.questions)
    if as_json:
        write_json({"id": None, "next_day": day})
    else:
        print_message(say("ask-nothing-due", day=day))


INTERVIEW_QUESTIONS = 10
"""The number of questions without --questions."""
LARGEST_SEED = 10**6


def interview(
    topic: Annotated[str | None, typer.Option("--topic", metavar="metavar-topic", help="help-topic")] = None,
    level: Annotated[str | None, typer.Option("--level", metavar="metavar-level", help="help-level")] = None,
    count: Annotated[str | None, typer.Option("--questions", metavar="metavar-number", help="help-questions")] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="metavar-number", help="help-interview-seed")] = None,
    reveal: Annotated[bool, typer.Option("--reveal", help="help-interview-reveal")] = False,
    ratings: Annotated[str | None, typer.Option("--rate", metavar="metavar-ratings", help="help-ratings")] = None,
    listed: Annotated[bool, typer.Option("--list", help="help-topic-list")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="help-json")] = False,
) -> None:
    import random

    from regard.course.progress import ProgressFile
    from regard.course.questions import interview_questions, topic_named

    if listed:
        _list_topics(as_json)
        return
    if ratings is not None and seed is None:
        raise ArgumentError("interview-rate-seed")
    number = random.randrange(LARGEST_SEED) if seed is None else whole_number("--seed", seed, least=0)
    wanted = INTERVIEW_QUESTIONS if count is None else whole_number("--questions", count, least=1)
    topic = None if topic is None else topic_named(topic)
    only_level = None if level is None else _level(level)
    chosen = interview_questions(wanted, number, topic, only_level)
    rated = None if ratings is None else _ratings(ratings, len(chosen))
    progress_file = ProgressFile(report=print_message)
    answers = [] if rated is None else _saved(progress_file, chosen, rated)
    if as_json:
        cards = progress_file.read().questions
        rows = [question_json(one, cards.get(one.id), reveal) | {"limit_s": _limit([one])} for one in chosen]
        about = {"seed": number, "topic": topic, "level": only_level, "limit_s": _limit(chosen), "questions": rows}
        write_json(about | _json_summary(answers))
        return
    if len(chosen) < wanted:
        print_message(say("interview-fewer", count=len(chosen)))
    if rated is not None:
        _put_summary(answers)
    elif not reveal and is_terminal():
        _hold(progress_file, chosen)
    else:
        texts = [_numbered_question(chosen, place) for place in range(len(chosen))]
        if reveal:
            texts = [f"{text}\n\n{answers_text(one)}" for text, one in zip(texts, chosen, strict=True)]
        put("\n\n".join(texts), flush=True)
        print_message(say("interview-how", command=_command(number, wanted, topic, only_level)))


def _level(text: str) -> int:
    from regard.course.questions import LEVELS

    for known in LEVELS:
        if text.strip() == str(known):
            return known
    raise ArgumentError("level-unknown", found=text)


def _ratings(text: str, most: int) -> "list[Rating]":
    """Ratings separated by commas or spaces, for the first questions in their order."""
    found = [parsed_rating(one) for one in re.split(r"[\s,，、]+", text.strip())]
    if len(found) > most:
        raise ArgumentError("interview-rate-count", found=len(found), count=most)
    return found


def _saved(
    progress_file: "ProgressFile", chosen: "Sequence[Question]", ratings: "Sequence[Rating]"
) -> "list[RatedAnswer]":
    from regard.course.questions import RatedAnswer

    answers = [RatedAnswer(question, rating) for question, rating in zip(chosen, ratings, strict=False)]
    for one in answers:
        save_rating(progress_file, one.question, one.rating)
    return answers


# --- at a terminal -----------------------------------------------------------------------------------------


def _hold(progress_file: "ProgressFile", chosen: "Sequence[Question]") -> None:
    """Ask all questions. Each rating is saved at once; Ctrl-D and Ctrl-C end with a summary of what was rated."""
    answers: list[RatedAnswer] = []
    put(say("interview-begin", count=len(chosen), limit=_clock(_limit(chosen))))
    try:
        for place in range(len(chosen)):
            put()
            answer = _answered(progress_file, chosen, place)
            if answer is None:
                break
            answers.append(answer)
    except KeyboardInterrupt:
        put()
        _put_summary(answers)
        raise
    _put_summary(answers)


def _answered(progress_file: "ProgressFile", chosen: "Sequence[Question]", place: int) -> "RatedAnswer | None":
    """One question: the time until Enter is measured, then the answers are shown and rated."""
    from regard.course.questions import RatedAnswer

    question = chosen[place]
    put(_numbered_question(chosen, place))
    start = time.monotonic()
    if typed(say("interview-answer")) is None:
        return None
    seconds = time.monotonic() - start
    put(say("interview-time", time=_clock(seconds), limit=_clock(_limit([question]))))
    put(f"\n{folded(question.text().short)}\n\n{folded(question.text().deep)}")
    rating = typed_rating()
    if rating is None:
        return None
    save_rating(progress_file, question, rating)
    return RatedAnswer(question, rating, seconds)


# --- output ------------------------------------------------------------------------------------------------


def _numbered_question(chosen: "Sequence[Question]", place: int) -> str:
    from regard.course.questions import topics
    from regard.messages import language

    question = chosen[place]
    heading = say(
        "interview-question",
        number=place + 1,
        count=len(chosen),
        topic=getattr(topics()[question.topic], language()),
        level=question.level,
        limit=_clock(_limit([question])),
    )
    return f"{heading}\n[{question.id}] {folded(question.text().ask)}"


def _put_summary(answers: "Sequence[RatedAnswer]") -> None:
    from regard.course.questions import summary, topics
    from regard.messages import language

    if not answers:
        print_message(say("interview-nothing-rated"))
        return
    result = summary(answers)
    put(f"\n{say('interview-score', score=result.score, count=len(answers), **result.ratings)}")
    if result.seconds is not None:
        clock, limit = _clock(result.seconds), _clock(result.limit)
        put(say("interview-total-time", time=clock, limit=limit, over=result.over_limit))
    if result.weakest:
        titles = Listed(getattr(topics()[topic], language()) for topic in result.weakest)
        put(say("interview-weakest", topics=titles))
        put(say("interview-study"))
        for command in study_commands(list(result.lessons), list(result.exercises)):
            put(f"  {command}")


def _json_summary(answers: "Sequence[RatedAnswer]") -> dict[str, Any]:
    from dataclasses import asdict

    from regard.course.questions import summary

    return {"summary": asdict(summary(answers))} if answers else {}


def _list_topics(as_json: bool) -> None:
    """The topics, and how many questions of each level they have."""
    from regard.course.questions import LEVELS, questions, topics
    from regard.messages import language

    rows = []
    for topic, title in topics().items():
        counts = [sum((one.topic, one.level) == (topic, level) for one in questions()) for level in LEVELS]
        rows.append({"topic": topic, "title": getattr(title, language()), "questions": counts})
    if as_json:
        write_json({"topics": rows})
        return
    for row in rows:
        put(f"{row['topic']:13} {' '.join(f'{count:2}' for count in row['questions'])}  {row['title']}")
    print_message(say("interview-columns"))


def _limit(chosen: "Sequence[Question]") -> int:
    from regard.course.questions import time_limit

    return time_limit(chosen)


def _clock(seconds: float) -> str:
    """Minutes and seconds, such as 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _command(seed: int, count: int, topic: str | None, level: int | None) -> str:
    """The command that chooses the same questions."""
    given = {
        "--topic": topic,
        "--level": level,
        "--questions": None if count == INTERVIEW_QUESTIONS else count,
        "--seed": seed,
    }
    options = [f"{name} {value}" for name, value in given.items() if value is not None]
    return " ".join(["regard learn interview", *options])
