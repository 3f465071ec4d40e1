"""Tokens as labels, and text in lines: every character visible, with a known width, cut or broken if too long.

Widths are columns of a terminal, where 注 takes two. Control characters become a sign and joiners are left out, as
terminals disagree about their width. Independent of records and traces.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from rich.cells import cell_len

from regard.messages import is_control, sign
from regard.text.segmentation import text_or_hex, token_bytes

_MARKER = re.compile(r"<[^<>\s]{1,20}>|\[[A-Z]{2,8}\]")
_MARKERS = dict.fromkeys(("<eos>", "</s>", "<|endoftext|>", "[sep]", "[eos]"), "␃")
_MARKERS |= dict.fromkeys(("<bos>", "<s>", "<|startoftext|>", "[cls]", "[bos]"), "␂")


@lru_cache(maxsize=64)
def readable(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """The tokens as text, for any spelling of the vocabulary; part of a character as its bytes.

    WordPiece tokens (`##ing`) contain no spaces and stay unchanged.

    >>> readable(("Ġcat", "Ġsat")), readable(("play", "##ing", "[SEP]"))
    ((' cat', ' sat'), ('play', '##ing', '[SEP]'))
    """
    if any(token.startswith("##") and len(token) > 2 for token in tokens):
        return tokens
    return tuple(text_or_hex(piece) for piece in token_bytes(tokens))


ARROW = " → "


def row_label(read: str, written: str) -> str:
    """The label of a row: the token read and the token written; "" means none.

    >>> row_label("<bos>", "我"), row_label("cat", "")
    ('<bos> → 我', 'cat')
    """
    return f"{printable_label(read)}{ARROW}{printable_label(written)}" if written else printable_label(read)


@lru_cache(maxsize=65536)
def printable_label(token: str) -> str:
    """The token on one line, with every character visible.

    >>> [printable_label(token) for token in ("a\\nb", " cat", "  ", "", "\\x1b[31mred\\x1b[0m")]
    ['a␊b', '␣cat', '␣␣', '""', '␛[31mred␛[0m']
    """
    shown = "".join(_sign(character) for character in token)
    if not shown:
        return '""'
    bare = shown.lstrip()
    spaces = "␣" * (len(shown) - len(bare))  # " cat" and "cat" are different tokens
    bare = bare.rstrip()
    # A lone accent would combine with the character before it.
    return spaces + (f"◌{bare}" if bare and unicodedata.category(bare[0])[0] == "M" else bare)


def _sign(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if category in ("Zl", "Zp"):
        return "␊"
    if code < 32 or (category[0] == "C" and is_control(character)):
        return sign(character)
    # Terminals disagree about the width of joined characters and variation selectors: show the parts side by side.
    if category == "Cf" or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return ""
    return " " if category == "Zs" else character


def cut(text: str, width: int) -> str:
    """The text if it fits in `width` columns, else its beginning and an ellipsis; of a pair of tokens, both beginnings.

    >>> cut("attention", 5), cut("注意力", 4), cut("注", 1), cut("attention → visible", 11)
    ('atte…', '注…', '…', 'att… → vis…')
    """
    if cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    read, arrow, written = text.partition(ARROW)
    if arrow and width >= 7:
        available = width - len(ARROW)
        first = max(available // 2, available - cell_len(written))
        read = cut(read, first)
        return read + ARROW + cut(written, available - cell_len(read))
    kept = text[: 4 * width]  # enough for accents, without measuring a token of a million letters
    while kept and cell_len(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def cut_start(text: str, width: int) -> str:
    """As `cut`, but keeps the end, where names of layers differ.

    >>> cut_start("transformer.h.11.attn", 9)
    '….11.attn'
    """
    if cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    kept = text[-width:]
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return "…" + kept


def pad(text: str, width: int, side: str = "left") -> str:
    """The text cut to the width and filled with spaces; `side` aligns it left, right or in the middle.

    >>> pad("注", 4, "right"), pad("ab", 5, "middle")
    ('  注', ' ab  ')
    """
    text = cut(text, width)
    available = width - cell_len(text)
    before = {"left": 0, "right": available, "middle": available // 2}[side]
    return " " * before + text + " " * (available - before)


def aligned(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> list[str]:
    """The rows as lines, with columns of equal width; `sides` aligns each column.

    >>> aligned([("注意", "1"), ("a", "10")], ("left", "right"))
    ['注意   1', 'a     10']
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(pad, row, widths, sides)).rstrip() for row in rows]


def upright(text: str, height: int) -> list[str]:
    """The text written downwards, one character per line, in at most `height` lines.

    >>> upright("love", 3), upright("爱", 3)
    (['l', 'o', '⋮'], ['爱'])
    """
    letters: list[str] = []
    for character in text:
        joined = letters and (unicodedata.category(character)[0] == "M" or cell_len(character) == 0)
        # Combining characters stay with their letter if the width does not grow.
        if joined and cell_len(letters[-1] + character) <= max(1, cell_len(letters[-1])):
            letters[-1] += character
        else:
            letters.append(character)
    return letters if len(letters) <= height else [*letters[: height - 1], "⋮"]


def special_token_sign(label: str) -> str | None:
    """One sign for a special token such as <eos>, for columns too narrow for its name; None for other labels.

    >>> [special_token_sign(label) for label in ("<eos>", "[CLS]", "<mask>", "love", "<")]
    ['␃', '␂', '◇', None, None]
    """
    return _MARKERS.get(label.lower(), "◇") if _MARKER.fullmatch(label) else None


def short_names(names: list[str]) -> tuple[list[str], str]:
    """The names without the parts that all share, and the shared pattern.

    >>> short_names(["h.0.attn", "h.1.attn"])
    (['0', '1'], 'h.*.attn')
    >>> short_names(["encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"])
    (['encoder.self', 'decoder.cross'], '*.layers.0.*_attention')
    """
    if len(names) < 2:
        return names, names[0] if names else ""
    parts = [name.split(".") for name in names]
    if len({len(part) for part in parts}) == 1 and len(set(names)) > 1:
        return _without_shared_columns(parts)
    shortest = min(len(part) for part in parts) - 1
    start = min(_shared(parts), shortest)
    end = min(_shared([part[::-1] for part in parts]), shortest - start)
    short = [".".join(part[start : len(part) - end]) for part in parts]
    shared = [*parts[0][:start], "*", *parts[0][len(parts[0]) - end :]]
    return short, ".".join(shared)


def _without_shared_columns(parts: list[list[str]]) -> tuple[list[str], str]:
    """Names with equally many parts: drop the parts that all share, and shared endings after a "_"."""
    short: list[list[str]] = [[] for _ in parts]
    pattern = []
    for column in zip(*parts, strict=True):
        if len(set(column)) == 1:
            pattern.append(column[0])
            continue
        words = [part.split("_")[::-1] for part in column]
        count = min(_shared(words), min(map(len, words)) - 1)
        ending = "".join(f"_{word}" for word in words[0][:count][::-1])
        pattern.append(f"*{ending}")
        for name, part in zip(short, column, strict=True):
            name.append(part.removesuffix(ending))
    return [".".join(name) for name in short], ".".join(pattern)


def _shared(parts: list[list[str]]) -> int:
    """The number of parts that all names begin with."""
    count = 0
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count


# --- line breaks -----------------------------------------------------------------------------------------

# A space, or one Chinese character or a run of other characters, together with opening punctuation, which must not end
# a line, and closing punctuation, which must not begin one.
CHINESE = r"\u2e80-\u9fff\uff00-\uffef“"
_ATOMS = re.compile(rf" +|[“「（]*(?:[{CHINESE}]|[^ {CHINESE}]+)[，。；：、！？）」”]*")


def fold(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces or between Chinese characters.

    >>> fold("attention 是这样计算的。", 14)
    ['attention 是这', '样计算的。']
    """
    text = text.lstrip(" ")
    return [text[start:end].rstrip() for start, end in pairwise([0, *line_breaks(text, width), len(text)])]


def line_breaks(text: str, width: int) -> list[int]:
    """The positions where a new line begins, for at most `width` columns; no line begins with closing punctuation.

    >>> line_breaks("注意力，和词元。", 8)
    [4]
    """
    places, start = [], 0
    for atom in _ATOMS.finditer(text):
        if atom.start() > start and cell_len(text[start : atom.end()].rstrip()) > width:
            places.append(start := atom.start())
    return places
