"""When a question is asked again: boxes with longer and longer waits, after Leitner. Knows days and cards alone."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from regard.course.progress import Card, Rating, moment

WAITS = (1, 3, 7, 14, 30, 60)
"""Days until a question that was answered well n + 1 times in a row is asked again."""


def rate(card: Card | None, rating: Rating, today: date) -> Card:
    """The card after a rating: "good" moves it on by a box, "again" back to the start and "unsure" to tomorrow.

    >>> rate(rate(None, "good", date(2026, 1, 1)), "good", date(2026, 1, 2)).due
    '2026-01-05'
    """
    box = 0 if card is None else card.box
    if rating == "good":
        box = min(box + 1, len(WAITS))
        days = WAITS[box - 1]
    elif rating == "unsure":
        days = 1
    else:
        box, days = 0, 0
    return Card(box=box, due=(today + timedelta(days)).isoformat(), rated=rating, at=moment())


def is_due(card: Card, today: date) -> bool:
    """Whether its day has come."""
    return card.due <= today.isoformat()


def next_question(ids: Sequence[str], cards: Mapping[str, Card], today: date) -> str | None:
    """What to ask now: what has waited longest, then what is new, then what was missed today; None if all can wait."""

    def order(place: int) -> tuple[int, str, int]:
        card = cards.get(ids[place])
        if card is None:
            return 1, "", place
        missed_today = card.rated == "again" and card.due == today.isoformat()
        return (2, card.at, place) if missed_today else (0, card.due, place)

    waiting = [place for place, one in enumerate(ids) if one not in cards or is_due(cards[one], today)]
    return ids[min(waiting, key=order)] if waiting else None


def next_day(ids: Sequence[str], cards: Mapping[str, Card]) -> str | None:
    """The day on which the first of them is due; None where there is none."""
    return min((cards[one].due for one in ids if one in cards), default=None)
