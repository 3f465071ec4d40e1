"""Sentence splitting: at sentence ends, never in a name or a number, and without loss."""

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
def test_sentences_are_split_at_their_ends(sentences: list[str]) -> None:
    assert split_sentences(" ".join(sentences)) == sentences
    assert split_sentences("  " + "  ".join(sentences) + "\n") == sentences
    assert split_sentences("\n\n".join(sentences)) == sentences


def test_line_ends_split_and_blank_lines_are_dropped() -> None:
    assert split_sentences("one line\r\nand another. \n\n  yes") == ["one line", "and another.", "yes"]
    assert split_sentences(" \n\t ") == split_sentences("") == []


@given(TEXTS)
def test_only_space_between_sentences_is_lost(text: str) -> None:
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    at = 0
    for sentence in found:
        assert sentence == sentence.strip() != ""
        at = text.index(sentence, at) + len(sentence)  # in order and unchanged


@given(TEXTS)
def test_splitting_a_sentence_again_changes_nothing(text: str) -> None:
    assert all(split_sentences(sentence) == [sentence] for sentence in split_sentences(text))


@pytest.mark.parametrize("unit", [".", "... ", "5! ", ".'", "a. ", "( ", "A. (", "! "])
def test_splitting_takes_linear_time(unit: str) -> None:
    """Time is linear in the length; quadratic time on 200,000 characters would take minutes."""
    began = time.process_time()
    split_sentences("(" * 50_000 + unit * 50_000)
    assert time.process_time() - began < 10
