"""Word links in Pharaoh format, and the links between tokens that they imply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ArgumentError
from regard.text.word_links import parse_links, shared_characters, split_words, token_links


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Don't go, Tom!", ["Don't", "go", ",", "Tom", "!"]),
        ("It's 3.50 at O'Neil's", ["It's", "3", ".", "50", "at", "O'Neil's"]),
        ("你好，Tom！", ["你", "好", "，", "Tom", "！"]),
        ("他1990年用Wi-Fi", ["他", "1990", "年", "用", "Wi", "-", "Fi"]),
        ("'tis a_b", ["'", "tis", "a", "_", "b"]),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@given(st.text(max_size=30))
def test_words_keep_every_character_but_spaces(text: str) -> None:
    assert "".join(split_words(text)) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("", []),
        ("0-0 1-2", [(0, 0), (1, 2)]),
        ("0-3", None),
        ("2-0", None),
        ("0-0,1-1", None),
        ("0?0", None),
        ("-1-0", None),
        ("٠-٠", None),
        ("99999999-0", None),
    ],
)
def test_links_of_two_and_three_words(text: str, links: list[tuple[int, int]] | None) -> None:
    assert parse_links(text, 2, 3) == links


def test_a_token_is_linked_to_all_tokens_of_the_linked_words() -> None:
    words = ["The", "elephant", "."], ["大", "象", "。"]
    found = token_links(["The", " ele", "phant", "."], ["大象", "。"], words, [(1, 0), (1, 1), (2, 2)])
    assert found == [(1, 0), (2, 0), (3, 1), (4, 2)]


def test_a_token_without_a_link_is_linked_to_the_end() -> None:
    assert token_links(["I"], ["我", "啊"], (["I"], ["我", "啊"]), [(0, 0)]) == [(0, 0), (1, 1), (1, 2)]
    assert token_links(["I"], ["我"], (["I"], ["我"]), []) == [(1, 0), (1, 1)]


def test_tokens_that_do_not_spell_the_words_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"the tokens 'I <unk>' do not spell the words 'I 鼯'"):
        token_links(["I", "<unk>"], ["我"], (["I", "鼯"], ["我"]), [])


def test_a_token_of_two_words_shares_characters_with_both() -> None:
    assert shared_characters(["大象", "。", "<eos>"], ["大", "象", "。"]).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
