"""Text split into words and English sentences, by rules of our own, and the main script of a text."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

# Blocks in which every character is a token: radicals to Kangxi, iteration marks and Suzhou numerals, kana, Han.
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
            # A combining mark without a base is a token; an invisible joiner is not.
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
    """gap, word, own (a token of its own), flag (half of one), extend (part of the token before), or broken."""
    code, category = ord(char), unicodedata.category(char)
    if category == "Cs":
        return "broken"  # half of a surrogate pair, from bytes that are not UTF-8
    if char == _JOINER or category[0] == "M" or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return "extend"
    if char == "\u200c":
        return "extend"  # occurs between letters of one Persian word
    if category[0] == "Z" or category in ("Cc", "Cf") or char.isspace():
        return "gap"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "flag"
    if any(low <= code <= high for low, high in _OWN_TOKEN):
        return "own"
    return "word" if category[0] in "LN" or char == "_" else "own"


# Possessive, and never started in the middle of a run: time stays linear on a hundred thousand full stops.
_STOP = re.compile(r"""(?<![.!?])([.!?]++)(["')\]]*+)\s++""")
_BEGINNING = re.compile(r"""["'(\[]{0,9}+""")
_LAST_WORD = re.compile(r"[\w.'&-]*\Z")
_LONGEST_WORD = 20  # no abbreviation is as long

# After these a sentence continues: they belong to the next word.
_BEFORE_A_NAME = re.compile(
    r"(?:mrs?|ms|messrs|mme|mlle|dr|prof|st|mt|ft|gen|col|capt|lt|sgt|rev|hon|gov|fig|e\.g|i\.e|vs|cf)\Z", re.IGNORECASE
)
# After these it continues unless the next word can only begin a sentence; likewise after initials and dotted words.
_IN_DOUBT = re.compile(
    r"(?:etc|[js]r|inc|ltd|co|corp|dept|approx|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|"
    r"[^\W\d_]|(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2})\Z",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"(?:I|You|He|She|It|We|They|This|That|These|Those|There|Here|The|A|An|My|Your|His|Her|Its|Our|Their|What|When|Where|"
    r"Who|Why|How|Which|Is|Are|Was|Were|Do|Does|Did|Have|Has|Can|Could|Will|Would|Should|And|But|So|Or|Then|If|In|On|At|"
    r"Please|Let|No|Yes|Not|After|Before|Because)\b(?!\.)"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order; nothing is lost but the space between them. The end of a line ends one too.

    >>> split_sentences("Mr. Li left at 7.30 a.m. today. Did he? He did!\\nwell... ok. bye.")
    ['Mr. Li left at 7.30 a.m. today.', 'Did he?', 'He did!', 'well... ok.', 'bye.']
    """
    return [sentence for line in text.splitlines() for sentence in _sentences_of(line.strip())]


def _sentences_of(line: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(line):
        if _ends(line, start, stop):
            yield line[start : stop.end(2)]
            start = stop.end()
    if start < len(line):
        yield line[start:]


def _ends(line: str, start: int, stop: re.Match[str]) -> bool:
    """Whether the sentence that begins at `start` ends with this stop."""
    first, following = _first_character(line, start), _first_character(line, stop.end())
    char = line[following : following + 1]
    if not (char.isalnum() or unicodedata.category(char or " ") == "Sc"):
        return False
    # Lower case continues the sentence, as in “Why?” she asked, unless this text begins sentences in lower case.
    if char.islower() and not line[first : first + 1].islower():
        return False
    if "!" in stop[1] or "?" in stop[1] or (stop[1] == "." and stop[2]):
        return True
    item = stop.start() - first < 4 and line[first : stop.start()].isdigit()  # 1. This is one
    return len(stop[1]) == 1 and not item and _can_end(line, stop.start(), following)


def _can_end(line: str, dot: int, following: int) -> bool:
    """Whether the word before this full stop can end a sentence, that is, is not an abbreviation within one."""
    match = _LAST_WORD.search(line, max(0, dot - _LONGEST_WORD), dot)
    word = match[0] if match else ""
    if _BEFORE_A_NAME.match(word) or (word.lower() == "no" and line[following].isdigit()):
        return False
    if _IN_DOUBT.match(word):
        return _BEGINS.match(line, following) is not None
    return True


def _first_character(line: str, at: int) -> int:
    """The position of the first character after quotes and brackets."""
    found = _BEGINNING.match(line, at)
    assert found is not None  # it may be empty
    return found.end()


SCRIPTS = {
    "LATIN": "latin",
    "CJK": "han",
    "HIRAGANA": "japanese",
    "KATAKANA": "japanese",
    "KATAKANA-HIRAGANA": "japanese",
    "HANGUL": "korean",
    "BOPOMOFO": "bopomofo",
    "CYRILLIC": "cyrillic",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "HEBREW": "hebrew",
    "DEVANAGARI": "devanagari",
    "BENGALI": "bengali",
    "TAMIL": "tamil",
    "THAI": "thai",
    "GEORGIAN": "georgian",
    "ARMENIAN": "armenian",
}
"""The first word of a letter's Unicode name, and the name of its script."""
OTHER = "other"
MOST_HAN = 4
"""Han characters for each kana in Japanese; with more, the text is Chinese with some kana."""


def main_script(text: str) -> str | None:
    """The script of most letters; None where there are none. Han together with kana is Japanese.

    >>> main_script("I love 中国"), main_script("我爱 Tom。"), main_script("東京へ行く"), main_script("3 + 4")
    ('latin', 'latin', 'japanese', None)
    """
    found = Counter(
        _script(character) for character in text if character == "〇" or unicodedata.category(character)[0] == "L"
    )
    kana, han = found["japanese"], found["han"]
    if kana and MOST_HAN * kana >= han:
        found["japanese"] += found.pop("han", 0)
    elif kana:
        found["han"] += found.pop("japanese", 0)
    if not found:
        return None
    most = max(found.values())
    return "latin" if found["latin"] == most else found.most_common(1)[0][0]


def _script(letter: str) -> str:
    name = unicodedata.name(unicodedata.normalize("NFKC", letter)[0], "").split(" ")[0]
    return "han" if letter == "〇" else SCRIPTS.get(name, OTHER)
