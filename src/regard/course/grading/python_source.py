"""Python source: a learner's, decoded, with hints for syntax errors; and values and calls, written for learners.

Byte order marks and line endings of any system are normalised silently. Other problems are reported: a wrong encoding,
NUL bytes, an empty file. For full-width punctuation, a common result of Chinese input methods, the hint names the
character to type instead. Compilation happens in the learner's process. Numbers are written with as few digits as
distinguish two results.
"""

import codecs
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from regard.course.exercise import Call, Track
from regard.course.grading.serialisation import ARRAY_OF, Other
from regard.course.grading.verdict import plain
from regard.messages import say

LONGEST_SOURCE = 1_000_000
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
    if len(raw) > 4 * LONGEST_SOURCE:
        return LearnerSource("", say("source-too-long", most=LONGEST_SOURCE))
    decoded = _decoded(raw) if isinstance(raw, bytes) else LearnerSource(raw)
    text = decoded.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if decoded.problem:
        return decoded
    if len(text) > LONGEST_SOURCE:
        return LearnerSource("", say("source-too-long", most=LONGEST_SOURCE))
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


WIDTH = 100
SMALL = 64
"""A larger array is shown by its shape only."""
LONGEST_TEXT, MOST = 300, 20
"""Limits for a learner's result: characters of a string or integer, elements of a list or dict."""


def written(value: Any, digits: int | None = None, track: Track = "numpy") -> str:
    """A value as Python source, with `digits` decimals, or with as many as an exact copy needs.

    >>> written((np.array([0.5, 0.25]), True)), written(np.array([1, 2]), track="torch")
    ('(np.array([0.5, 0.25]), True)', 'torch.tensor([1, 2])')
    """
    if isinstance(value, np.ndarray):
        return _array(value, digits, track)
    if isinstance(value, np.generic):
        return written(value.item(), digits)
    if isinstance(value, float) and digits is not None:
        return _number(value, digits)
    if isinstance(value, list | tuple):
        parts = [written(part, digits, track) for part in value]
        return (
            _joined("[", parts, "]")
            if isinstance(value, list)
            else _joined("(", parts, ",)" if len(parts) == 1 else ")")
        )
    if isinstance(value, Mapping):
        return _joined("{", [f"{key!r}: {written(part, digits, track)}" for key, part in value.items()], "}")
    return f"<{plain(value.type)}>" if isinstance(value, Other) else repr(value)


def shown(value: Any, digits: int | None = None, track: Track = "numpy") -> str:
    """A result as text for a verdict: like `written`, but long strings and lists are shortened and show their length.

    >>> shown("a" * 1000)[-28:]
    "aaaaaaa' … (1000 characters)"
    """
    return _cut(written(_fewer(value, [MOST]), digits, track), 10 * LONGEST_TEXT)


class _Text(str):
    """A placeholder for an omitted part; its repr is the text itself."""

    __slots__ = ()

    __repr__ = str.__str__


def _fewer(value: Any, left: list[int]) -> Any:
    """The value with at most `left[0]` elements in total and no long ones."""
    left[0] -= 1
    if isinstance(value, list | tuple | Mapping):
        parts = list(value.items() if isinstance(value, Mapping) else value)
        kept = [
            (_key(part[0]), _fewer(part[1], left)) if isinstance(value, Mapping) else _fewer(part, left)
            for part in parts[: max(left[0], 0)]
        ]
        more = _Text(say("verdict-parts-more", count=len(parts) - len(kept)))
        if isinstance(value, Mapping):
            return dict(kept) | ({_Text("…"): more} if len(kept) < len(parts) else {})
        return type(value)([*kept, more] if len(kept) < len(parts) else kept)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return _Text(say("verdict-text-more", text=repr(value[:LONGEST_TEXT]), count=len(value)))
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST_TEXT:
        return _Text(say("verdict-number-more", bits=value.bit_length()))
    return value


def _key(key: Any) -> Any:
    return _Text(f"{key[:40]!r}…") if isinstance(key, str) and len(key) > LONGEST_TEXT else key


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} …"


def pair(expected: Any, got: Any, track: Track = "numpy") -> tuple[str, str]:
    """Two results with just enough digits to show that they differ, at least four.

    >>> pair(0.123456, 0.123457)
    ('0.123456', '0.123457')
    """
    for digits in (4, 6, 8, 12):
        left, right = shown(expected, digits, track), shown(got, digits, track)
        if left != right:
            return left, right
    return shown(expected, track=track), shown(got, track=track)


def written_call(call: Call, track: Track) -> str:
    """The call as Python source.

    >>> written_call(Call("softmax", (np.array([1.0, 2.0]),), {"axis": -1}), "numpy")
    'softmax(np.array([1.0, 2.0]), axis=-1)'
    """
    name = call.target
    if call.instance is not None:
        name = _joined(f"{name}(", _arguments(call.instance.args, call.instance.kwargs, track), ")")
    return _joined(f"{name}(", _arguments(call.args, call.kwargs, track), ")")


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any], track: Track) -> list[str]:
    named = [f"{name}={written(value, track=track)}" for name, value in kwargs.items()]
    return [*(written(value, track=track) for value in args), *named]


def _joined(opening: str, parts: list[str], closing: str) -> str:
    """One line if it fits, otherwise one line per part."""
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inside = ",\n".join(parts).replace("\n", "\n    ")
    return f"{opening}\n    {inside},\n{closing.lstrip(',')}"


def _array(array: np.ndarray, digits: int | None, track: Track) -> str:
    """An array as a NumPy or PyTorch call. For torch, floats show no dtype: our float64 arrives as float32."""
    package, make, usual = ("torch", "tensor", (np.float32,)) if track == "torch" else ("np", "array", ())
    if array.size > SMALL:
        return f"<{make} {array.shape}, {array.dtype}>"
    if array.size == 0:
        kind = f"torch.{array.dtype}" if track == "torch" else f"'{array.dtype}'"
        return f"{package}.zeros({array.shape}, dtype={kind})"
    kind = "" if array.dtype in (np.float64, np.int64, np.bool_, *usual) else f", dtype={package}.{array.dtype}"
    text = _filled(f"{package}.{make}(", array, digits, f"{kind})")
    return text.replace("nan", f"{package}.nan").replace("inf", f"{package}.inf")


def _filled(opening: str, array: np.ndarray, digits: int | None, closing: str) -> str:
    """The bracketed numbers, rows aligned below each other."""
    numbers = _bracketed(array.tobytes(), array.dtype, array.shape, digits)
    return opening + numbers.replace("\n", "\n" + " " * len(opening)) + closing


@lru_cache(maxsize=512)
def _bracketed(data: bytes, dtype: np.dtype, shape: tuple[int, ...], digits: int | None) -> str:
    """Cached, because the calls of an exercise repeat its weights."""
    return np.array2string(
        np.frombuffer(data, dtype).reshape(shape),
        separator=", ",
        max_line_width=WIDTH,
        formatter={"float_kind": lambda x: str(x) if digits is None else _number(float(x), digits)},
    )


def _number(value: float, digits: int | None) -> str:
    """The shortest exact text, or `digits` decimals; very small and very large numbers in exponent notation."""
    if digits is None or not np.isfinite(value):
        return repr(value)
    return repr(round(value, digits)) if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.{digits}g}"


def kind_of(value: Any) -> str:
    """The dtype of an array or NumPy scalar, otherwise the name of the type.

    >>> kind_of(np.zeros(2)), kind_of(1)
    ('float64', 'int')
    """
    if isinstance(value, Other):
        return plain(value.type.removeprefix(ARRAY_OF).removesuffix("]"))
    return str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__


def type_of(value: Any, track: Track) -> str:
    """The display name of a value's type; in the torch track arrays represent tensors.

    >>> type_of(np.zeros(2), "torch"), type_of([1], "torch")
    ('torch.Tensor', 'list')
    """
    if isinstance(value, Other):
        name = plain(value.type)
        return say("verdict-large", type=name) if value.about == "large" else name
    if isinstance(value, np.ndarray):
        return "torch.Tensor" if track == "torch" else "np.ndarray"
    return type(value).__name__
