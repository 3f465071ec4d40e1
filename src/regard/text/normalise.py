"""Normalisation of text: typed or pasted input, casual English spelling, Moses tokenisation, simplified characters.

Input is normalised before a model reads it; training text is prepared by Moses tokenisation, as in the papers.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from math import inf
from types import ModuleType

from regard.errors import MissingPackageError
from regard.text.segmentation import split_sentences

_REPLACEMENTS = {
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
"""Terminal escapes: in text copied from a terminal their letters and digits would be read as text."""
_BLANKS = re.compile(r" *\n *| {2,}")
_HAN = re.compile("[〇㐀-䶿一-鿿豈-\ufaff\U00020000-\U0003ffff]")
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ]")


class _Table(dict[int, str]):
    """The replacement of each character, computed on first use: Unicode has a million."""

    def __missing__(self, code: int) -> str:
        char, category = chr(code), unicodedata.category(chr(code))
        if category in ("Cf", "Cs"):
            found = ""  # zero-width, bidirectional, half a surrogate pair
        elif category in ("Cc", "Zs") and char != "\n":
            found = " "
        else:
            found = chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else char
        self[code] = found
        return found


_TABLE = _Table({ord(char): plain for plain, chars in _REPLACEMENTS.items() for char in chars})


def tidy(text: str) -> str:
    r"""The text in NFC with plain punctuation, single spaces and no invisible characters; line ends are kept.

    >>> tidy("  “It’s\t５\u200b o’clock…”\r\nＯＫ ")
    '"It\'s 5 o\'clock..."\nOK'
    """
    # Once before NFC, so that a mark follows its letter, and once after, because NFC creates some of these characters.
    plain = unicodedata.normalize("NFC", _ESCAPES.sub("", text).translate(_TABLE)).translate(_TABLE)
    return _BLANKS.sub(lambda found: "\n" if "\n" in found[0] else " ", plain).strip()


def is_chinese(text: str) -> bool:
    """Whether there are more Han characters than Latin letters.

    >>> is_chinese("我爱 Tom。"), is_chinese("我们都爱 Tom。"), is_chinese("3 + 4")
    (False, True, False)
    """
    return len(_HAN.findall(text)) > len(_LATIN.findall(text))


TokenCount = Callable[[str], float]
"""The number of tokens of a word; infinity where it cannot be encoded."""

# Not part of an address or an abbreviation: www.china.com, i.e., I/O.
_WORD = re.compile(r"(?<![\w@/.&'])[^\W\d_]++(?:'[^\W\d_]++)*+(?![\w@/&]|\.\w)")
_OPENING = re.compile(r"""["(\[]*+""")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_INTERJECTIONS = ("hi", "hey", "oh")
"""Sentences of one word; other single words stay in lower case, as in a dictionary."""
_I = re.compile(r"i(?:'(?:m|ll|ve|d))?\Z", re.IGNORECASE)

_CONTRACTIONS = """
ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shouldn't wasn't weren't
won't wouldn't I'm I've he's she's that's what's there's who's you're you've you'll they're they've they'll
"""
CONTRACTIONS = {short.replace("'", "").lower(): short for short in _CONTRACTIONS.split()}
"""By their spelling without the apostrophe; without those that are then another word: its, well, were, ill, lets."""

_NAMES = """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays
January February April June July August September October November December Christmas Easter
English Englishman French German Japanese Chinese Spanish Italian Russian Greek Korean Portuguese Arabic Latin British
American Americans Canadian Canadians Australian European African Asian Indian Mexican Vietnamese Thai Dutch Swedish
China Japan America Canada Australia England Britain Scotland Ireland France Germany Italy Spain Portugal Greece Russia
Poland Sweden Norway Denmark Austria Switzerland India Korea Vietnam Thailand Singapore Taiwan Brazil Mexico Egypt
Europe Asia Africa Zealand Beijing Shanghai Tokyo Osaka Kyoto Boston London Paris Rome Berlin Chicago Hawaii California
Tom Mary John Anna Alice Jane Tony Jim Ken Peter Paul David George Charles Elizabeth
Xiaoming Xiaohong Xiaoli Xiaolan Xiaowei Xiaolong Xiaogang Xiaoqiang Xiaoping Xiaofang Xiaomei Xiaoyu Xiaoyan Xiaoliang
Xiaojun Xiaohua Facebook OK TV CD DVD USA UK
"""
NAMES = {name.lower(): name for name in _NAMES.split()}
"""By their lower-case spelling, which is not that of a more frequent word."""


def correct_spelling(text: str, count_tokens: TokenCount) -> str:
    """A tidy English text with capitals and apostrophes corrected.

    >>> correct_spelling("hi tom! i dont know 1,000 words. i'll ask on monday", len)
    "Hi Tom! I don't know 1000 words. I'll ask on Monday"
    """
    joined = _GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    return "\n".join(_line(line, count_tokens) for line in joined.split("\n"))


def _line(line: str, count_tokens: TokenCount) -> str:
    in_capitals = line.isupper()
    # Split first: capitals show where a sentence begins. In a tidy line one space separates two sentences.
    return " ".join(_sentence(sentence, in_capitals, count_tokens) for sentence in split_sentences(line))


def _sentence(sentence: str, in_capitals: bool, count_tokens: TokenCount) -> str:
    if in_capitals:
        sentence = _WORD.sub(lambda found: _lowered(found[0], count_tokens), sentence)
    return _capitalised(_WORD.sub(lambda found: _word(found[0], count_tokens), sentence), count_tokens)


def _lowered(word: str, count_tokens: TokenCount) -> str:
    """A word of a line in capitals, in lower case unless that takes as many tokens or more: TV."""
    small = word.lower()
    return small if len(word) == 1 or count_tokens(small) < count_tokens(word) else word


def _word(word: str, count_tokens: TokenCount) -> str:
    """A word with its apostrophe, and with its capital if it is a name."""
    small = word.lower()
    stem, apostrophe, end = word.partition("'")
    if _I.match(word):
        new = small.capitalize()
    elif small in CONTRACTIONS:
        new = CONTRACTIONS[small]
        new = new[0].upper() + new[1:] if word[0].isupper() else new
    elif stem.lower() in NAMES:
        new = NAMES[stem.lower()] + apostrophe + end
    else:
        return word
    return new if count_tokens(new) < inf else word


def _capitalised(sentence: str, count_tokens: TokenCount) -> str:
    """A sentence with a capital at its beginning, unless the word takes more tokens with it."""
    start = _OPENING.match(sentence)
    first = _WORD.match(sentence, start.end() if start else 0)
    if first is None or not first[0].islower() or (first[0] == sentence and sentence not in _INTERJECTIONS):
        return sentence
    capitalised = first[0].capitalize()
    return (
        sentence[: first.start()] + capitalised + sentence[first.end() :]
        if count_tokens(capitalised) <= count_tokens(first[0])
        else sentence
    )


# --- training text ---------------------------------------------------------------------------------------


def moses_tokenised(lines: Iterable[str], lang: str) -> list[str]:
    """Each line normalised, lower-cased and split by single spaces; `lang` is "en", "de", "fr", …

    >>> moses_tokenised(["A woman's “red” hat."], "en")
    ['a woman &apos;s &quot; red &quot; hat .']
    """
    moses = _moses()
    normaliser, tokeniser = moses.MosesPunctNormalizer(lang=lang), moses.MosesTokenizer(lang=lang)
    return [tokeniser.tokenize(normaliser.normalize(line).lower(), escape=True, return_str=True) for line in lines]


def moses_detokenised(lines: Iterable[str], lang: str) -> list[str]:
    """Lines joined from their Moses tokens; they stay in lower case.

    >>> moses_detokenised(["a woman &apos;s &quot; red &quot; hat ."], "en")
    ['a woman\\'s "red" hat.']
    """
    writer = _moses().MosesDetokenizer(lang=lang)
    return [writer.detokenize(line.split()) for line in lines]


def _moses() -> ModuleType:
    try:
        import sacremoses  # type: ignore[import-untyped]
    except ImportError as error:
        package = {"package": "sacremoses", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.normalise", **package) from error
    return sacremoses


def simplified(lines: Iterable[str]) -> list[str]:
    """Each line in simplified characters; other text is unchanged.

    >>> simplified(["她的頭髮", "hair"])
    ['她的头发', 'hair']
    """
    try:
        from opencc import OpenCC
    except ImportError as error:
        package = {"package": "opencc", "extra": "train"}
        raise MissingPackageError("missing-package", what="regard.text.normalise", **package) from error
    convert = OpenCC("t2s").convert
    return [convert(line) for line in lines]
