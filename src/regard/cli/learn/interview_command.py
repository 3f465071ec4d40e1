"""`regard learn interview`: a timed mock interview with self-rated answers and a summary."""

import re
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.learn.question_commands import (
    answers_text,
    folded,
    is_terminal,
    parsed_rating,
    question_json,
    save_rating,
    study_commands,
    typed,
    typed_rating,
)
from regard.cli.number_options import whole_number
from regard.cli.streams import print_message, put, write_json
from regard.errors import ArgumentError
from regard.messages import Listed, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.course.progress import ProgressFile, Rating
    from regard.course.questions import Question
    from regard.course.questions.interview import RatedAnswer

DEFAULT = 10
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
    from regard.course.questions.interview import choose, topic_named

    if listed:
        _list(as_json)
        return
    if ratings is not None and seed is None:
        raise ArgumentError("interview-rate-seed")
    number = random.randrange(LARGEST_SEED) if seed is None else whole_number("--seed", seed, least=0)
    wanted = DEFAULT if count is None else whole_number("--questions", count, least=1)
    topic = None if topic is None else topic_named(topic)
    only_level = None if level is None else _level(level)
    chosen = choose(wanted, number, topic, only_level)
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
        texts = [_question_text(chosen, place) for place in range(len(chosen))]
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
    from regard.course.questions.interview import RatedAnswer

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
    from regard.course.questions.interview import RatedAnswer

    question = chosen[place]
    put(_question_text(chosen, place))
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


def _question_text(chosen: "Sequence[Question]", place: int) -> str:
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
    from regard.course.questions import topics
    from regard.course.questions.interview import summary
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

    from regard.course.questions.interview import summary

    return {"summary": asdict(summary(answers))} if answers else {}


def _list(as_json: bool) -> None:
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
    from regard.course.questions.interview import limit

    return limit(chosen)


def _clock(seconds: float) -> str:
    """Minutes and seconds, such as 2:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _command(seed: int, count: int, topic: str | None, level: int | None) -> str:
    """The command that chooses the same questions."""
    given = {"--topic": topic, "--level": level, "--questions": None if count == DEFAULT else count, "--seed": seed}
    options = [f"{name} {value}" for name, value in given.items() if value is not None]
    return " ".join(["regard learn interview", *options])
