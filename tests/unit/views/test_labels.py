"""Labels take the columns they say they take, and nothing in them moves the cursor."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.views.labels import (
    ARROW,
    cut,
    cut_start,
    marker_sign,
    pad,
    readable,
    row_label,
    short_names,
    upright,
    visible,
)

ANY_TEXT = st.text(st.characters(categories=None, codec=None) | st.sampled_from("注意力🤗Ġ▁\n\x1b[\u200d\ufe0f\u0301 "))


def test_tokens_that_mark_what_goes_on_stay_as_they_are() -> None:
    """WordPiece has no spaces: "play" is not " play"."""
    assert [visible(token) for token in readable(("[CLS]", "play", "##ing", "."))] == ["[CLS]", "play", "##ing", "."]
    assert [visible(token) for token in readable(("The", "Ġcat", "Ċ"))] == ["The", "␣cat", "␊"]
    assert [visible(token) for token in readable(("▁The", "▁cat", "s"))] == ["␣The", "␣cat", "s"]


@given(st.text(), st.text(), st.integers(7, 40))
def test_of_two_tokens_both_are_cut(read: str, written: str, width: int) -> None:
    label = row_label(read, written)
    shown = cut(label, width)
    assert cell_len(shown) <= width
    if written and ARROW not in visible(read) + visible(written):
        assert ARROW in shown


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        (" cat", "␣cat"),
        ("\u3000注意 力\u00a0", "␣注意 力"),
        ("a\nb\tc\r", "a␊b␉c␍"),
        ("\x00\x7f", "␀␡"),
        ("\x85", "⟨85⟩"),
        ("\ud83d", "⟨D83D⟩"),
        ("\u2028", "␊"),
        ("   ", "␣␣␣"),
        ("\n", "␊"),
        ("", '""'),
        ("\u200b", "⟨200B⟩"),
        ("\u202eb\x9b", "⟨202E⟩b⟨9B⟩"),
        ("\x1b[1;31mred\x1b[0m", "␛[1;31mred␛[0m"),
        ("\x1b]8;;http://x\x07link", "␛]8;;http://x␇link"),
        ("\x1b", "␛"),
        ("👨\u200d👩\u200d👧", "👨👩👧"),
        ("❤\ufe0f", "❤"),
        ("\u0301x", "◌\u0301x"),
    ],
)
def test_every_character_is_visible(token: str, shown: str) -> None:
    assert visible(token) == shown


@given(ANY_TEXT)
def test_nothing_that_moves_the_cursor_gets_through(token: str) -> None:
    shown = visible(token)
    assert shown
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in shown)
    shown.encode()


@given(ANY_TEXT, st.integers(0, 12))
def test_a_cut_fits(token: str, width: int) -> None:
    shown = visible(token)
    for cutter in (cut, cut_start):
        assert cell_len(cutter(shown, width)) <= width
    if cell_len(shown) <= width:
        assert cut(shown, width) == shown


@given(ANY_TEXT, st.integers(0, 12), st.sampled_from(["left", "right", "middle"]))
def test_padding_gives_the_width_exactly(token: str, width: int, side: str) -> None:
    assert cell_len(pad(visible(token), width, side)) == width


@given(ANY_TEXT, st.integers(1, 6))
def test_upright_letters_are_at_most_two_columns(token: str, height: int) -> None:
    letters = upright(visible(token), height)
    assert 0 < len(letters) <= height
    assert all(cell_len(letter) <= 2 for letter in letters)


def test_upright_keeps_accents_on_their_letter() -> None:
    assert upright("e\u0301a", 5) == ["e\u0301", "a"]


@pytest.mark.parametrize(
    ("names", "short", "pattern"),
    [
        (["h.0.attn", "h.1.attn", "h.10.attn"], ["0", "1", "10"], "h.*.attn"),
        (["encoder.0.attn", "decoder.0.cross"], ["encoder.attn", "decoder.cross"], "*.0.*"),
        (["a", "a#1"], ["a", "a#1"], "*"),
        (["h.0", "h.0.attn"], ["0", "0.attn"], "h.*"),
        (["only.one"], ["only.one"], "only.one"),
        (["a.b.b", "a.b"], ["b.b", "b"], "a.*"),
    ],
)
def test_names_lose_what_they_share(names: list[str], short: list[str], pattern: str) -> None:
    assert short_names(names) == (short, pattern)


@pytest.mark.parametrize("label", ["<", "<>", "<a b>", "[x]", "[]", "love", "<<eos>>", "明", "<" + "a" * 40 + ">"])
def test_what_is_no_special_token_keeps_its_letters(label: str) -> None:
    assert marker_sign(label) is None
