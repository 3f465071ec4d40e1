"""Sentences: split where a reader would, never in a name or a number, and nothing lost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import split_sentences

PIECES = "I he Tom the Mr. Dr. e.g. a.m. U.S. J. etc. No. 3.5 7 $5 ... ? ! . ?! end. end! 'Why?' (Yes.) ' 我。 🙂"
WORDS = st.sampled_from([*PIECES.split(), "\n", "\t"])
TEXTS = st.lists(WORDS).map(" ".join) | st.text(st.sampled_from("aA1 .!?'\")(\n月"), max_size=60) | st.text(max_size=60)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Xiaoming went to the shop and bought apples, then he went home."],
        ["Hi!", "How are you?", "I'm fine, thanks.", "And you?"],
        ["Mr. and Mrs. Li met Dr. Wang in St. Petersburg.", "They were happy."],
        ["J. K. Rowling wrote it.", "John F. Kennedy read it."],
        ["Plan B.", "It works."],
        ["School begins at 8 a.m. on Monday.", "I get up at 6 a.m.", "Then I eat."],
        ["The U.S. President lives in Washington D.C. now.", "He left the U.S.", "It is large."],
        ["It costs 3.50 dollars, e.g. in a shop, i.e. not here.", "$5 is too much."],
        ["Well... I don't know.", "Wait... what?"],
        ["Apples, pears, etc. are fruit.", "We like cats, dogs, etc.", "They like us."],
        ['"Why?" he asked.', '"I don\'t know."', "She left."],
        ["(He was ill.)", "[So was I.]", "Really?!", "Yes."],
        ["i am here.", "where are you?", "ok."],
        ["1. Buy milk.", "2. Go home."],
        ["No.", "I live at no. 5 here.", "No. 7 is hers."],
        ["Look at example.com, version 2.0, or .5 of it."],
        ["Great! 🙂 See you."],
        ["I have a Ph.D. in physics.", "Tom has none."],
        ["Yahoo! is a firm.", "Who?"],
        ["我爱你.", "你呢?"],
    ],
)
def test_where_a_reader_would(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences
    assert split_sentences("  " + "  ".join(sentences) + "\n") == sentences
    assert split_sentences("\n\n".join(sentences)) == sentences


def test_lines_are_apart_and_space_is_nothing() -> None:
    assert split_sentences("one line\r\nand another. \n\n  yes") == ["one line", "and another.", "yes"]
    assert split_sentences(" \n\t ") == split_sentences("") == []


@given(TEXTS)
def test_nothing_is_lost_but_the_space_between(text: str) -> None:
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    at = 0
    for sentence in found:
        assert sentence == sentence.strip() != ""
        at = text.index(sentence, at) + len(sentence)  # in order, and inside as it was


@given(TEXTS)
def test_a_sentence_is_one_sentence(text: str) -> None:
    assert all(split_sentences(sentence) == [sentence] for sentence in split_sentences(text))


@pytest.mark.parametrize("unit", [".", "... ", "5! ", ".'", "a. ", "( ", "A. (", "! "])
def test_no_text_takes_long(unit: str) -> None:
    """Time grows with the length of the text, not with its square: 200,000 characters that way would take minutes."""
    began = time.process_time()
    split_sentences("(" * 50_000 + unit * 50_000)
    assert time.process_time() - began < 10
