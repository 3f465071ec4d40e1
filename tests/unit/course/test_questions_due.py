"""The review schedule of questions."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from regard.course.progress import RATINGS, Card
from regard.course.questions import WAITS, is_due, next_day, next_question, rate

TODAY = date(2026, 3, 1)


def test_good_answers_increase_the_interval() -> None:
    card, day = None, TODAY
    for wait in (*WAITS, WAITS[-1], WAITS[-1]):
        card = rate(card, "good", day)
        assert date.fromisoformat(card.due) - day == timedelta(wait)
        day = date.fromisoformat(card.due)


def test_unsure_is_due_tomorrow_and_keeps_the_box() -> None:
    known = rate(rate(None, "good", TODAY), "good", TODAY)
    unsure = rate(known, "unsure", TODAY)
    assert (unsure.box, unsure.due) == (2, "2026-03-02")
    assert rate(None, "unsure", TODAY).box == 0


def test_again_is_due_today_and_resets_the_box() -> None:
    card = rate(rate(None, "good", TODAY), "again", TODAY)
    assert (card.box, card.due) == (0, "2026-03-01")
    assert is_due(card, TODAY)


def test_questions_are_ordered_by_due_date() -> None:
    """The longest overdue first, then new ones, then those missed today in order."""
    at = "2026-03-01T10:0{}:00+00:00"
    cards = {
        "missed-later": Card(box=0, due="2026-03-01", rated="again", at=at.format(5)),
        "missed": Card(box=0, due="2026-03-01", rated="again", at=at.format(2)),
        "known": Card(box=3, due="2026-03-04", rated="good", at=at.format(0)),
        "today": Card(box=1, due="2026-03-01", rated="good", at="2026-02-28T10:00:00+00:00"),
        "waiting": Card(box=1, due="2026-02-20", rated="again", at="2026-02-20T10:00:00+00:00"),
    }
    ids = ["missed-later", "known", "new", "missed", "newer", "today", "waiting"]
    order = []
    while (one := next_question(ids, cards, TODAY)) is not None:
        order.append(one)
        ids.remove(one)
    assert order == ["waiting", "today", "new", "newer", "missed", "missed-later"]
    assert ids == ["known"]
    assert next_day(ids, cards) == "2026-03-04"
    assert next_day(["new"], cards) is None


@given(st.lists(st.sampled_from(RATINGS), min_size=1, max_size=12))
def test_boxes_and_days_stay_within_limits(ratings: list[str]) -> None:
    card, day = None, TODAY
    for rating in ratings:
        card = rate(card, rating, day)  # type: ignore[arg-type]
        assert 0 <= card.box <= len(WAITS)
        assert day <= date.fromisoformat(card.due) <= day + timedelta(max(WAITS))
        day = date.fromisoformat(card.due)
    assert ratings[-1] == card.rated  # type: ignore[union-attr]
