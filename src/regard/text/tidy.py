"""Typed or pasted text made plain before a model reads it, and training text in the same way.

Only what a keyboard would have written otherwise is changed: quotes, dashes, widths, spaces, and what cannot be seen.
It is for English: full-width punctuation, which is right in Chinese, becomes plain. No letter is lost, and nothing is
known of any vocabulary.
"""

import re
import unicodedata

_WRITTEN = {
    "'": "‘’‚‛′´‹›",
    '"': "“”„‟″«»",
    "-": "‐‑‒–—―−",
    "\n": "\u2028\u2029\x85",
    "...": "…",
    "ff": "ﬀ",
    "fi": "ﬁ",
    "fl": "ﬂ",
    "ffi": "ﬃ",
    "ffl": "ﬄ",
}
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""What colours a terminal: copied from one, its letters and digits would be read as text."""
_BLANKS = re.compile(r" *\n *| {2,}")
_HAN = re.compile("[〇㐀-䶿一-鿿豈-\ufaff\U00020000-\U0003ffff]")
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ]")


class _Table(dict[int, str]):
    """What each character becomes; found when it is first met, since Unicode has a million."""

    def __missing__(self, code: int) -> str:
        char, category = chr(code), unicodedata.category(chr(code))
        if category in ("Cf", "Cs"):
            found = ""  # zero-width, bidirectional, half a character
        elif category in ("Cc", "Zs") and char != "\n":
            found = " "
        else:
            found = chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else char
        self[code] = found
        return found


_TABLE = _Table({ord(char): plain for plain, chars in _WRITTEN.items() for char in chars})


def tidy(text: str) -> str:
    r"""The text in NFC and plain signs: one space where there were several, line ends kept, nothing invisible.

    >>> tidy("  “It’s\t５\u200b o’clock…”\r\nＯＫ ")
    '"It\'s 5 o\'clock..."\nOK'
    """
    # Once before NFC, so that a mark meets its letter, and once after it, because NFC makes some of these signs itself.
    plain = unicodedata.normalize("NFC", _ESCAPES.sub("", text).translate(_TABLE)).translate(_TABLE)
    return _BLANKS.sub(lambda found: "\n" if "\n" in found[0] else " ", plain).strip()


def is_chinese(text: str) -> bool:
    """Whether there are more Han characters than Latin letters.

    >>> is_chinese("我爱 Tom。"), is_chinese("我们都爱 Tom。"), is_chinese("3 + 4")
    (False, True, False)
    """
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))
