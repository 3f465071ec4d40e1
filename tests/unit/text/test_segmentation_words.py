"""Word splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat sat.", ["the", "cat", "sat", "."]),
        ("小明去商店，他", ["小", "明", "去", "商", "店", "，", "他"]),
        ("I 爱 you", ["I", "爱", "you"]),
        ("don't stop, it’s 'fine'", ["don't", "stop", ",", "it’s", "'", "fine", "'"]),
        ("pi is 3.14, or 1,000.", ["pi", "is", "3.14", ",", "or", "1,000", "."]),
        ("well-known snake_case", ["well", "-", "known", "snake_case"]),
        ("カタカナ", ["カ", "タ", "カ", "ナ"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("cafe\u0301 é", ["cafe\u0301", "é"]),
        ("हिन्दी शब्द", ["हिन्दी", "शब्द"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("👩\u200d🚀👍🏽❤️", ["👩\u200d🚀", "👍🏽", "❤️"]),
        ("🇨🇳🇬🇧", ["🇨🇳", "🇬🇧"]),
        ("a\x00b\x1b[31mc\ufeffd", ["a", "b", "[", "31mc", "d"]),
        ("bad \udcff byte", ["bad", "\ufffd", "byte"]),
        ("", []),
        (" \t\n\u3000\u200b\u200d", []),
        ("\u0301", ["\u0301"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
    ],
)
def test_split_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text())
def test_no_visible_character_is_lost_or_added(text: str) -> None:
    words = split_words(text)
    assert all(words)
    assert not any(word.isspace() for word in words)
    left = iter(text)
    assert all(char in left for word in words for char in word if char != "\ufffd")
    assert [c for c in text if c.isalnum()] == [c for c in "".join(words) if c.isalnum()]
