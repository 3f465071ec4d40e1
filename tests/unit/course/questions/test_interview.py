"""The mock interview: which questions it chooses, and what its summary reports."""

import pytest

from regard.course.progress import Rating
from regard.course.questions import LEVELS, question, questions, topics
from regard.course.questions.interview import LIMITS, RatedAnswer, choose, limit, summary, topic_named
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import LANGUAGES


def test_a_seed_gives_the_same_questions_and_another_seed_others() -> None:
    assert choose(10, seed=1) == choose(10, seed=1)
    assert choose(10, seed=1) != choose(10, seed=2)


@pytest.mark.parametrize("seed", range(5))
def test_questions_differ_get_harder_and_come_from_many_topics(seed: int) -> None:
    chosen = choose(10, seed)
    assert len({one.id for one in chosen}) == len({one.topic for one in chosen}) == 10
    assert [one.level for one in chosen] == sorted(one.level for one in chosen)
    everything = choose(len(topics()) + 5, seed)
    assert {one.topic for one in everything} == set(topics())


def test_topic_and_level_restrict_the_choice() -> None:
    for level in LEVELS:
        assert {one.level for one in choose(10, 0, level=level)} == {level}
    for topic in topics():
        assert {one.topic for one in choose(3, 0, topic=topic)} == {topic}
    both = choose(10, 0, "serving", 3)
    assert {(one.topic, one.level) for one in both} == {("serving", 3)}
    assert len(both) < 10, "fewer than asked for, if there are no more"


def test_every_question_can_be_asked() -> None:
    assert set(choose(1000, 0)) == set(questions())


def test_a_topic_without_questions_of_the_level_lists_its_levels() -> None:
    with pytest.raises(ArgumentError, match="shapes has no question of level 3; its levels: 1, 2"):
        choose(10, 0, "shapes", 3)


def test_a_topic_is_found_by_name_and_title() -> None:
    assert topic_named(" Masks ") == topic_named("掩码") == "masks"
    for asked, text in (("mask", "did you mean masks"), ("zzz", "choose one of: decoding, formula")):
        with pytest.raises(UnknownNameError, match=text) as caught:
            topic_named(asked)
        for lang in LANGUAGES:
            assert "training" in caught.value.text(lang)


def test_limits_add_up() -> None:
    chosen = choose(10, 0)
    assert limit(chosen) == sum(LIMITS[one.level] for one in chosen)
    assert set(LIMITS) == set(LEVELS)


def answer(id: str, rating: Rating, seconds: float | None = None) -> RatedAnswer:
    return RatedAnswer(question(id), rating, seconds)


def test_summary() -> None:
    result = summary(
        [
            answer("why-residuals", "good", 30.0),
            answer("swiglu", "unsure", 100.0),
            answer("adamw", "again", 200.0),
            answer("lora", "again", 10.0),
            answer("mask-polarity", "unsure", 10.0),
        ]
    )
    assert result.ratings == {"good": 1, "unsure": 2, "again": 2}
    assert result.score == 40, "unsure counts half"
    assert (result.seconds, result.limit, result.over_limit) == (350.0, 120 + 4 * 180, 1)
    assert result.weakest == ("optimisation", "models", "masks"), "three of four; layers has 75 %"
    assert result.lessons == (4, 7, 8, 10)
    assert result.exercises == ("feed-forward", "encoder-layer", "self-attention", "bug-mask-polarity")


def test_summary_of_good_answers_asks_for_nothing() -> None:
    result = summary([answer("lora", "good"), answer("adamw", "good")])
    assert result.score == 100
    assert result.seconds is None
    assert (result.weakest, result.lessons, result.exercises) == ((), (), ())


def test_summary_of_nothing() -> None:
    assert (summary([]).score, summary([]).limit, summary([]).seconds) == (0, 0, None)
