"""Labels: exact widths, and no character that moves the cursor."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.views.labels import (
    ARROW,
    cut,
    cut_start,
    pad,
    printable_label,
    readable,
    row_label,
    short_names,
    special_token_sign,
    upright,
)

ANY_TEXT = st.text(st.characters(categories=None, codec=None) | st.sampled_from("注意力🤗Ġ▁\n\x1b[\u200d\ufe0f\u0301 "))


def test_wordpiece_tokens_stay_unchanged() -> None:
    """WordPiece has no spaces: "play" is not " play"."""
    assert [printable_label(token) for token in readable(("[CLS]", "play", "##ing", "."))] == [
        "[CLS]",
        "play",
        "##ing",
        ".",
    ]
    assert [printable_label(token) for token in readable(("The", "Ġcat", "Ċ"))] == ["The", "␣cat", "␊"]
    assert [printable_label(token) for token in readable(("▁The", "▁cat", "s"))] == ["␣The", "␣cat", "s"]


@given(st.text(), st.text(), st.integers(7, 40))
def test_both_tokens_of_a_pair_are_cut(read: str, written: str, width: int) -> None:
    label = row_label(read, written)
    shown = cut(label, width)
    assert cell_len(shown) <= width
    if written and ARROW not in printable_label(read) + printable_label(written):
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
    assert printable_label(token) == shown


@given(ANY_TEXT)
def test_no_character_moves_the_cursor(token: str) -> None:
    shown = printable_label(token)
    assert shown
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in shown)
    shown.encode()


@given(ANY_TEXT, st.integers(0, 12))
def test_a_cut_text_fits(token: str, width: int) -> None:
    shown = printable_label(token)
    for cutter in (cut, cut_start):
        assert cell_len(cutter(shown, width)) <= width
    if cell_len(shown) <= width:
        assert cut(shown, width) == shown


@given(ANY_TEXT, st.integers(0, 12), st.sampled_from(["left", "right", "middle"]))
def test_a_padded_text_has_the_exact_width(token: str, width: int, side: str) -> None:
    assert cell_len(pad(printable_label(token), width, side)) == width


@given(ANY_TEXT, st.integers(1, 6))
def test_letters_written_downwards_are_at_most_two_columns_wide(token: str, height: int) -> None:
    letters = upright(printable_label(token), height)
    assert 0 < len(letters) <= height
    assert all(cell_len(letter) <= 2 for letter in letters)


def test_accents_stay_on_their_letter_when_written_downwards() -> None:
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
def test_short_names_drop_shared_parts(names: list[str], short: list[str], pattern: str) -> None:
    assert short_names(names) == (short, pattern)


@pytest.mark.parametrize("label", ["<", "<>", "<a b>", "[x]", "[]", "love", "<<eos>>", "明", "<" + "a" * 40 + ">"])
def test_other_labels_have_no_special_token_sign(label: str) -> None:
    assert special_token_sign(label) is None
