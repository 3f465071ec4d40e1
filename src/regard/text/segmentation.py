"""Words, English sentences and the main script of a text; the characters and words that tokens form.

Byte-level vocabularies split 月 into three tokens that mean nothing alone. Tokens are recognised by their spelling only
(Ġcat, ▁cat, ##s, cat</w>, ca@@, ⟨E6 9C⟩, <0xE6>); no tokenizer is needed.
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

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


# --- tokens ----------------------------------------------------------------------------------------------

MARK = "▁"
"""Stands for a space, as in SentencePiece."""
WRITTEN_ONLY = "\ue000"
"""Begins the spelling of a token that a model writes and that no text is divided into; not shown."""

_FRAGMENT = re.compile(r"⟨([0-9A-F]{2}(?: [0-9A-F]{2})*)⟩|<0x([0-9A-F]{2})>")
_CONTROL = re.compile(r"[<\[].+[>\]]", re.DOTALL)


def _byte_characters() -> dict[str, int]:
    """The character for each byte in byte-level tokens: the byte's own if it is printable, else one above 255."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return dict(
        chain(((chr(byte), byte) for byte in printable), ((chr(256 + i), byte) for i, byte in enumerate(hidden)))
    )


_BYTES = _byte_characters()


def byte_level_bytes(token: str) -> bytes | None:
    """The bytes of a token of a byte-level vocabulary; None for an added token, which is plain text.

    >>> byte_level_bytes("Ġcat"), byte_level_bytes("æľ"), byte_level_bytes("注")
    (b' cat', b'\\xe6\\x9c', None)
    """
    return bytes(_BYTES[character] for character in token) if all(character in _BYTES for character in token) else None


def text_or_hex(piece: bytes) -> str:
    """The text of some bytes, or the bytes in hexadecimal where they are not whole characters.

    >>> text_or_hex("月".encode()), text_or_hex(b"\\xe6\\x9c")
    ('月', '⟨E6 9C⟩')
    """
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return f"⟨{piece.hex(' ').upper()}⟩"


def token_bytes(tokens: Sequence[str], byte_level: bool = False) -> list[bytes]:
    """The bytes of each token of one text, with the space before a word where the vocabulary marks it.

    byte_level   the vocabulary is known to be byte-level; otherwise that is inferred from the tokens

    >>> token_bytes(["play", "##ing", "chess"]), token_bytes(["æľ", "Ī", "Ġis"])
    ([b' play', b'ing', b' chess'], [b'\\xe6\\x9c', b'\\x88', b' is'])
    """
    if byte_level or _is_byte_level(tokens):
        return [raw if (raw := byte_level_bytes(token)) is not None else _encoded(token) for token in tokens]
    fragments = [_FRAGMENT.fullmatch(token) for token in tokens]
    return [
        bytes.fromhex(found[1] or found[2]) if found else _encoded(text)
        for found, text in zip(fragments, _spaced(tokens), strict=True)
    ]


def character_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The smallest groups of tokens that split no character; bytes that are not UTF-8 are groups of one.

    >>> character_groups([b"a", b"\\xe6\\x9c", b"\\x88", b"\\xff"])
    [slice(0, 1, None), slice(1, 3, None), slice(3, 4, None)]
    """
    groups: list[slice] = []
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0

    def ungrouped(stop: int) -> None:
        nonlocal start
        groups.extend(slice(at, at + 1) for at in range(start, stop))
        start = stop

    for at, piece in enumerate(pieces):
        if not _is_unfinished(decoder, piece):
            ungrouped(at)  # the character that was begun is never completed; this piece may begin another
            if not _is_unfinished(decoder, piece):
                ungrouped(at + 1)
                continue
        if not decoder.getstate()[0]:
            groups.append(slice(start, at + 1))
            start = at + 1
    ungrouped(len(pieces))
    return groups


def word_groups(pieces: Sequence[bytes]) -> list[slice]:
    """The smallest groups of tokens that split no word, as `split_words` finds words.

    Tokens without any space among them are treated as words.

    >>> word_groups([b"un", b"likely", b" yes", b"!"])
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    groups = character_groups(pieces)
    texts = [text_or_hex(b"".join(pieces[group])) for group in groups]
    if not any(" " in text for text in texts):
        return groups
    inside = _inside_words("".join(texts))
    joined: list[slice] = []
    at, space = 0, False
    for group, text in zip(groups, texts, strict=True):
        if joined and (at in inside or (space and text[:1].strip())):  # a single space belongs to the next word
            joined[-1] = slice(joined[-1].start, group.stop)
        else:
            joined.append(group)
        at, space = at + len(text), text == " "
    return joined


def _inside_words(text: str) -> set[int]:
    """The positions between two letters of one word."""
    inside: set[int] = set()
    at = 0
    for word in split_words(text):
        at = text.index(word, at)
        inside.update(range(at + 1, at + len(word)))
        at += len(word)
    return inside


def _is_unfinished(decoder: codecs.IncrementalDecoder, piece: bytes) -> bool:
    """Whether the piece continues the bytes decoded so far; if not, the decoder is reset."""
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        decoder.reset()
        return False
    return True


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # half a surrogate pair is then not UTF-8, and shown as bytes


def _is_byte_level(tokens: Iterable[str]) -> bool:
    """Whether the tokens are byte-level, as those of GPT-2 and Qwen: Ġcat, æľ.

    Decided by decoding them: other text in these letters (café) is almost never UTF-8 when read as bytes. A model may
    write broken characters among whole ones.
    """
    raw = b""
    spaces = 0
    for token in tokens:
        found = byte_level_bytes(token)
        if found is None and not _CONTROL.fullmatch(token):
            return False
        raw += found or b""
        spaces += token.count("Ġ") + token.count("Ċ")
    text = raw.decode(errors="replace")
    broken = text.count("\ufffd")
    whole = sum(not character.isascii() for character in text) - broken
    return spaces + whole > broken


def _spaced(tokens: Sequence[str]) -> Sequence[str]:
    """The tokens with plain spaces in place of the vocabulary's markers for a space or for no space."""
    if any(MARK in token for token in tokens):
        return [token.replace(MARK, " ") for token in tokens]
    if any(token.startswith("##") and len(token) > 2 for token in tokens):
        return [token[2:] if token.startswith("##") and len(token) > 2 else f" {token}" for token in tokens]
    if any(token.endswith("</w>") for token in tokens):
        return [token.removesuffix("</w>") + " " * token.endswith("</w>") for token in tokens]
    if any(token.endswith("@@") and len(token) > 2 for token in tokens):
        return [token[:-2] if token.endswith("@@") and len(token) > 2 else f"{token} " for token in tokens]
    return tokens
