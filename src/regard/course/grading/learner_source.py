"""Decodes a learner's source, and turns syntax errors into hints.

Byte order marks and line endings of any system are normalised silently. Other problems are reported: a wrong encoding,
NUL bytes, an empty file. For full-width punctuation, a common result of Chinese input methods, the hint names the
character to type instead. Compilation happens in the learner's process.
"""

import codecs
import re
import unicodedata
from dataclasses import dataclass

from regard.messages import say

LONGEST = 1_000_000
"""In characters. A solution has a few hundred."""

_COOKIE = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
_ENCODINGS = frozenset(("utf-8", "gbk", "gb2312", "gb18030", "big5", "iso8859-1", "cp1252", "ascii"))
"""Encodings that a `coding:` line may name; other codecs of Python turn a text into a different program."""

_QUIET = re.compile(r"""(\"{3}|'{3})[\s\S]*?\1|"[^"\n]*"|'[^'\n]*'|\#[^\n]*""")
"""Strings and comments, which may contain any character."""

SHOWN = 3
"""The number of full-width characters listed in one hint."""

# ASCII equivalents of what input methods and word processors write.
_TYPED = {
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "。": ".",
    "、": ",",
    "【": "[",
    "】": "]",
    "《": "<",
    "》": ">",
    "—": "-",
    "–": "-",
    "−": "-",
    "×": "*",
    "·": ".",
    "…": "...",
    "￥": "$",
}


@dataclass(frozen=True)
class LearnerSource:
    """A source ready to run, or a message about its problem with the line number."""

    text: str
    problem: str = ""
    line: int | None = None


def read_source(raw: str | bytes) -> LearnerSource:
    r"""The normalised text, or a message about what is wrong with it.

    >>> read_source(b"\xef\xbb\xbfx = 1\r\n").text
    'x = 1\n'
    >>> read_source("  \n").problem
    'the file is empty; write your answer into it, save it and check again'
    """
    if len(raw) > 4 * LONGEST:
        return LearnerSource("", say("source-too-long", most=LONGEST))
    decoded = _decoded(raw) if isinstance(raw, bytes) else LearnerSource(raw)
    text = decoded.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if decoded.problem:
        return decoded
    if len(text) > LONGEST:
        return LearnerSource("", say("source-too-long", most=LONGEST))
    if not text.strip():
        return LearnerSource("", say("source-empty"))
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        return LearnerSource("", say("source-nul", line=line), line)
    if lone := re.search("[\ud800-\udfff]", text):
        line = text[: lone.start()].count("\n") + 1
        return LearnerSource("", say("source-not-utf8", line=line), line)
    return LearnerSource(text)


def _decoded(raw: bytes) -> LearnerSource:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return LearnerSource("", say("source-utf16"), 1)
    encoding = "utf-8"
    if cookie := _COOKIE.match(raw):
        try:
            encoding = codecs.lookup(cookie[1].decode("ascii")).name
        except LookupError:
            encoding = ""
    if encoding not in _ENCODINGS:
        return LearnerSource("", say("source-encoding", found=str(cookie and cookie[1].decode("ascii"))[:40]), 1)
    try:
        return LearnerSource(raw.decode(encoding))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return LearnerSource("", say("source-not-utf8", line=line), line)


def syntax_hint(text: str, kind: str, message: str, line: int) -> str:
    """What to change, in one sentence, from a syntax error of Python.

    >>> syntax_hint("print（1)", "SyntaxError", "invalid character '（' (U+FF08)", 1)
    'line 1 has the full-width character （; switch the input method to English and type ('
    """
    lines = text.split("\n")
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    if kind == "TabError" or ("\t" in written and kind == "IndentationError"):
        return say("source-tabs", line=line)
    if kind == "IndentationError":
        return say("source-indentation", line=line)
    if written.lstrip().startswith(("%", "!")):
        return say("source-magic", line=line)
    sign = _strange_sign(written, message)
    if sign is None:
        return _missing_sign(message, line)
    if _is_full_width(sign):
        return _full_width(text, line, sign)
    if not sign.isprintable() or sign.isspace():
        return say("source-invisible", line=line, code=f"U+{ord(sign):04X}")
    return say("source-character", line=line, sign=sign)


def _is_full_width(sign: str) -> bool:
    return sign in _TYPED or (unicodedata.east_asian_width(sign) == "F" and bool(sign.strip()))


def _full_width(text: str, line: int, sign: str) -> str:
    """The hint for a full-width character, with up to three places at once; Python reports one at a time."""
    bare = _QUIET.sub(lambda quiet: "\n" * quiet[0].count("\n"), text).split("\n")
    signs = [(n, one) for n, row in enumerate(bare, 1) for one in row if _is_full_width(one) and not one.isalpha()]
    places = list(dict.fromkeys([(line, sign), *(place for place in signs if place[0] >= line)]))
    if len(places) == 1:
        return say("source-full-width", line=line, sign=sign, plain=_narrow(sign))
    shown = [say("source-full-width-place", line=n, sign=one, plain=_narrow(one)) for n, one in places[:SHOWN]]
    more = say("source-full-width-more", count=len(places) - SHOWN) if len(places) > SHOWN else ""
    return say("source-full-widths", signs=" · ".join(shown), more=more)


def _strange_sign(written: str, message: str) -> str | None:
    """The character that caused the error: given by its code, or the first full-width one of the line, since “ opens no
    string and Python may complain about what follows."""
    if code := re.search(r"U\+([0-9A-F]{4,6})", message):
        return chr(int(code[1], 16))
    bare = re.sub(r"#.*|'[^']*'|\"[^\"]*\"", "", written)
    return next((sign for sign in bare if sign in _TYPED or "！" <= sign <= "～" or sign == "\u3000"), None)


def _narrow(sign: str) -> str:
    return _TYPED.get(sign) or unicodedata.normalize("NFKC", sign)


def _missing_sign(message: str, line: int) -> str:
    if "expected ':'" in message:
        return say("source-colon", line=line)
    if "was never closed" in message or "unmatched" in message or "does not match" in message:
        return say("source-bracket", line=line)
    if "unterminated" in message:
        return say("source-string", line=line)
    return say("source-syntax", line=line, message=message)
