"""Text normalisation: plain characters, and a second pass changes nothing."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text import is_chinese, tidy

# Characters with a rule of their own, among ordinary ones.
CORNERS = st.text(
    st.sampled_from("aé e\u0301ｅ\u200d\u200b\ufeff\u202e\ud800…—’“\n\r\t \u3000\x00\x1b\u2028\u1ffd月。，ﬁ🙂")
)
TEXTS = CORNERS | st.text(st.characters(), max_size=40)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("I’m “here” — now…", 'I\'m "here" - now...'),
        ("Ｈｅｌｌｏ，\u3000ｗｏｒｌｄ！", "Hello, world!"),
        ("\ufeffzero\u200bwidth \u202eright to left\u202c so\u00adft", "zerowidth right to left soft"),
        ("cafe\u0301 and e\u200d\u0301", "café and é"),
        ("bell\x07, escape\x1b[31m, nothing\x00", "bell , escape, nothing"),
        ("half \ud83d of a pair", "half of a pair"),
        ("  a  b\t\tc \r\n  d \n\n e  ", "a b c\nd\n\ne"),
        ("ﬁnd the oﬃce", "find the office"),
        ("我爱你。Tom & Jerry 🙂 100 %", "我爱你。Tom & Jerry 🙂 100 %"),
        (" \u200b\n\x00", ""),
    ],
)
def test_tidy(text: str, wanted: str) -> None:
    assert tidy(text) == wanted


@given(TEXTS)
def test_tidy_is_idempotent(text: str) -> None:
    assert tidy(tidy(text)) == tidy(text)


def test_tidy_is_idempotent_for_every_character() -> None:
    # Separated by spaces, each followed by a mark that NFC may join to it.
    assigned = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) not in ("Cn", "Co")]
    text = tidy(" ".join(f"a{char}\u0301b" for char in assigned))
    assert tidy(text) == text
    assert unicodedata.is_normalized("NFC", text)


@given(TEXTS)
def test_invisible_characters_are_removed_and_letters_kept(text: str) -> None:
    found = tidy(text)
    assert not {unicodedata.category(char) for char in found.replace("\n", "")} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert "  " not in found
    assert found == found.strip()
    found.encode()  # raises on surrogates

    # NFKC maps the same widths, ligatures and composed letters.
    def letters(text: str) -> list[str]:
        visible = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Cs"))
        return [char for char in unicodedata.normalize("NFKC", visible) if char.isalnum()]

    assert letters(found) == letters(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我爱你", True),
        ("我爱你 ok", True),
        ("我爱 ok", False),
        ("I love 北京", False),
        ("𠮷野家", True),
        ("Ｉ　ａｍ 我", False),
        ("漢字", True),
        ("こんにちは", False),
        ("?! 123 🙂", False),
        ("", False),
    ],
)
def test_is_chinese_compares_han_with_latin_letters(text: str, wanted: bool) -> None:
    assert is_chinese(text) is wanted
