"""Split text into words as a reader sees them, in any script, with nothing but Unicode's own tables.

Words stay whole, a punctuation mark or symbol stands alone, and so does each Chinese character or kana,
because these are written without spaces. It does not find Chinese words of several characters; that takes a
dictionary.
"""

import unicodedata
from itertools import pairwise

# Blocks whose every character is a token: radicals to Kangxi, iteration marks and Suzhou numerals, kana, Han.
_OWN_TOKEN = (
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFF),
)
_JOINER = "\u200d"
_REPLACEMENT = "\ufffd"


def split_words(text: str) -> list[str]:
    """The words, punctuation marks and characters of `text`, in order, without the space between them.

    >>> split_words("Don't panic: 小明买了 3.5 斤苹果！")
    ["Don't", 'panic', ':', '小', '明', '买', '了', '3.5', '斤', '苹', '果', '！']
    """
    tokens: list[str] = []
    before = "gap"
    for char, following in pairwise([*text, " "]):
        kind = _kind(char)
        if kind == "gap":
            before = "gap"
        elif _continues(before, kind, tokens, char, following):
            tokens[-1] += char
            if char == _JOINER:
                before = "joined"
            elif before == "joined" and kind != "extend":
                before = kind
        elif kind != "extend" or unicodedata.category(char) != "Cf":
            # A mark with nothing to stand on is a token; an invisible joiner is not.
            tokens.append(_REPLACEMENT if kind == "broken" else char)
            before = kind
    return tokens


def _continues(before: str, kind: str, tokens: list[str], char: str, following: str) -> bool:
    """Whether `char` belongs to the token before it."""
    if before == "gap" or kind == "broken":
        return False
    if kind == "extend" or before == "joined":
        return True
    if kind == "flag":
        return before == "flag" and len(tokens[-1]) == 1
    if before != "word":
        return False
    if char in "'’":
        return _kind(following) == "word"
    if char in ".,":
        return tokens[-1][-1].isdigit() and following.isdigit()
    return kind == "word"


def _kind(char: str) -> str:
    """gap, word, own (a token by itself), flag (half of one), extend (part of what is before), or broken."""
    code, category = ord(char), unicodedata.category(char)
    if category == "Cs":
        return "broken"  # half of a character: bytes that were no UTF-8
    if char == _JOINER or category[0] == "M" or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return "extend"
    if char == "\u200c":
        return "extend"  # stands between letters of one Persian word
    if category[0] == "Z" or category in ("Cc", "Cf") or char.isspace():
        return "gap"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "flag"
    if any(low <= code <= high for low, high in _OWN_TOKEN):
        return "own"
    return "word" if category[0] in "LN" or char == "_" else "own"
