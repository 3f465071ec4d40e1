"""Casual English spelling is corrected; correct spelling is unchanged."""

import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.translator import SENTENCES, read_sentences
from regard.text.normalise import CONTRACTIONS, NAMES, correct_spelling, tidy


def count_tokens(word: str) -> float:
    """The tokens of a word: one if it is in normal case or TV, else one for each letter."""
    return 1 if word == "TV" or not any(map(str.isupper, word[1:])) else len(word)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("i love you", "I love you"),
        ("so i'm here, and i'll stay", "So I'm here, and I'll stay"),
        ("I LOVE YOU", "I love you"),
        ("I AM VERY ANGRY.", "I am very angry."),
        ("I WATCH TV. IT'S A COLD DAY!", "I watch TV. It's a cold day!"),
        ("TV", "TV"),
        ("hi", "Hi"),
        ("hi there", "Hi there"),
        ("cat", "cat"),  # as a dictionary writes it
        ("cat!", "Cat!"),
        ('what? i dont know. "really?"', 'What? I don\'t know. "Really?"'),
        ("i dont know. she left. tom too", "I don't know. She left. Tom too"),
        ("(well, she left)", "(Well, she left)"),
        ("Dont go, you cant", "Don't go, you can't"),
        ("im sure theyre late", "I'm sure they're late"),
        ("its his, were well, he lets us", "Its his, were well, he lets us"),
        ("on monday tom's friend speaks english in the usa", "On Monday Tom's friend speaks English in the USA"),
        ("ok, it may rain", "OK, it may rain"),
        ("i.e. www.china.com, tom@x.org and i/o", "i.e. www.china.com, tom@x.org and i/o"),
        ("iPhone users know", "iPhone users know"),
        ("one line\nand another\n\nI SEE", "One line\nAnd another\n\nI see"),
        ("1,234 people, 12,345,678.50 or 1,23 or 1,2345", "1234 people, 12345678.50 or 1,23 or 1,2345"),
    ],
)
def test_casual_spelling_is_corrected(typed: str, wanted: str) -> None:
    assert correct_spelling(typed, count_tokens) == wanted
    assert correct_spelling(wanted, count_tokens) == wanted


@pytest.mark.parametrize("file", ["first_hundred.txt", "judged.tsv", "aligned.tsv"])
def test_correct_sentences_are_unchanged(file: str) -> None:
    sentences = [line.split("\t")[0] for line in read_sentences(SENTENCES / file)]
    assert len(sentences) >= 50
    assert [sentence for sentence in sentences if correct_spelling(tidy(sentence), len) != tidy(sentence)] == []


def test_words_that_cannot_be_encoded_are_not_written() -> None:
    small = "i dont know tom. it is MONDAY"
    assert correct_spelling(small, lambda word: 1 if word.islower() else inf) == small.replace("dont", "don't")


def test_contractions_and_names_exclude_ambiguous_words() -> None:
    assert not {"its", "well", "were", "ill", "id", "lets", "wed", "shell", "hell"} & CONTRACTIONS.keys()
    assert not {"may", "march", "will", "mark", "bill", "it", "us", "mike", "bob"} & NAMES.keys()


@given(text=st.text(max_size=80) | st.text("aiI'M. ,!?\n\"(1d", max_size=80))
def test_letters_are_preserved(text: str) -> None:
    plain = tidy(text)
    found = correct_spelling(plain, len)
    assert re.sub("[',]", "", found).casefold() == re.sub("[',]", "", plain).casefold()


@pytest.mark.parametrize("text", ["a" * 10**5 + "@", "a'" * 10**5, "1," * 10**5, "(" * 10**5, "i. " * 10**4])
def test_long_texts_take_linear_time(text: str) -> None:
    assert len(correct_spelling(tidy(text), len)) <= len(text)
