"""Which script a text is written in, told by its letters. A script is not a language: only kana and Hangul name one."""

import unicodedata
from collections import Counter

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
"""How Unicode's names of letters begin, and our word for it."""
OTHER = "other"
MOST_HAN = 4
"""Han characters for each kana in Japanese; more of them, and the kana stand within a Chinese text."""


def main_script(text: str) -> str | None:
    """The script of most letters; None where there is no letter. Han with kana beside it is Japanese.

    >>> main_script("I love 中国"), main_script("我爱 Tom。"), main_script("東京へ行く"), main_script("3 + 4")
    ('latin', 'latin', 'japanese', None)
    """
    found = Counter(_script(sign) for sign in text if sign == "〇" or unicodedata.category(sign)[0] == "L")
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
