"""Attention patterns that heads are known to have, each as the keys that such a head attends to; and `register`.

    previous      the token before                                    Voita et al. 2019 ("positional heads")
    itself        the token itself                                    Clark et al. 2019, section 3.1
    first         the first token, which takes the surplus attention  Xiao et al. 2024 ("attention sinks")
    same          the same token at other positions                   Wang et al. 2023 ("duplicate token heads")
    induction     what came after the same token earlier              Olsson et al. 2022
    local         at most three places away                           Kovaleva et al. 2019 ("diagonal")
    separator     punctuation, ends of lines, control tokens          Clark et al. 2019, section 3.2
    back-K        the token K places before, K ≥ 2; ahead-K the token K places after
    induction+K   the token K places after the same token earlier, K ≥ 2; induction-K the token K places before it

A pattern gives a factor for the weight on each key: 1 on its keys, 0 elsewhere. Only `same` uses more than 1, because
the token itself is the same token too: a head that attends evenly to all n of them should score 1, and one that attends
only to itself 0, so the n − 1 others count n / (n − 1), and a row at most 1.

back-K and ahead-K are measured for all K at once, from sums along the diagonals (`trace.measures.heads`).
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Language, Listed, language, say

NEAR = 3
"""The largest distance of a local head."""
SHIFTS = (*range(-8, 0), *range(2, 9))
"""Offsets from the earlier token at which a shifted induction head attends; 0 is `same`, 1 is `induction`."""
ALIGNMENT = "alignment"
"""In cross-attention, a different key for each query: this is no fixed set of keys, so it is measured separately."""
_MARKS = "Ġ▁ "
"""The space before a word, as tokenizers write it."""
_CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")
_ENDS = "\n\rĊ|｜"
"""Line ends, also as GPT-2 writes them, and column separators that Unicode does not class as punctuation."""
_OFFSET = re.compile(r"(back|ahead)-([1-9][0-9]{0,8})")
_SHIFTED = re.compile(r"induction([+-][1-9])")


class PatternRows(NamedTuple):
    """The input of a pattern: some rows of a record."""

    places: np.ndarray
    """r: the key positions of the queries; meaningless in cross-attention."""
    visible: np.ndarray
    """B r S: which keys are visible to each query."""
    first: np.ndarray
    """B: the first key of each text."""
    tokens: np.ndarray | None
    """B S: the keys as numbers, equal where the tokens are equal, -1 for no token; None where tokens are unknown."""
    separators: np.ndarray | None
    """B S: which keys are separators."""
    texts: tuple[tuple[str, ...], ...] | None = None
    """The tokens at the keys as text, a row for each sample, or one for all; None where they are unknown."""


Counts = np.ndarray
"""B r S, or what broadcasts to it."""
Pattern = Callable[[PatternRows], Counts]


def previous(rows: PatternRows) -> Counts:
    """The token before."""
    return _at(rows, rows.places - 1)


def itself(rows: PatternRows) -> Counts:
    """The token itself."""
    return _at(rows, rows.places)


def first(rows: PatternRows) -> Counts:
    """The first token, for all queries but its own."""
    keys = np.arange(rows.visible.shape[-1])
    return (keys == rows.first[:, None, None]) & ~_at(rows, rows.places)


def first_in_cross(rows: PatternRows) -> Counts:
    """The first token in cross-attention, where no query is a key."""
    return np.arange(rows.visible.shape[-1]) == rows.first[:, None, None]


def same(rows: PatternRows) -> Counts:
    """The same token elsewhere."""
    own = _at(rows, rows.places)
    equal = _equal(rows) & rows.visible
    others = equal & ~own
    count = others.sum(-1, keepdims=True)
    every = equal.sum(-1, keepdims=True)
    return others * (every / np.maximum(count, 1))


def induction(rows: PatternRows) -> Counts:
    """What came after the same token earlier."""
    earlier = _equal(rows) & (np.arange(rows.visible.shape[-1]) < rows.places[:, None])
    after = np.zeros_like(earlier)
    after[..., 1:] = earlier[..., :-1]
    return after & ~_at(rows, rows.places)


def shifted_induction(shift: int) -> Pattern:
    """`shift` places after the earlier same token, or before it where `shift` is negative."""

    def pattern(rows: PatternRows) -> Counts:
        keys = np.arange(rows.visible.shape[-1])
        earlier = _equal(rows) & (keys < rows.places[:, None])
        moved = np.zeros_like(earlier)
        if shift > 0:
            moved[..., shift:] = earlier[..., :-shift]
        else:
            moved[..., :shift] = earlier[..., -shift:]
        return moved & (keys < rows.places[:, None])

    return pattern


def offset_pattern(back: int) -> Pattern:
    """The token `back` places before, or after where `back` is negative."""
    return lambda rows: _at(rows, rows.places - back)


def local(rows: PatternRows) -> Counts:
    """At most NEAR places away."""
    return np.abs(np.arange(rows.visible.shape[-1]) - rows.places[:, None])[None] <= NEAR


def separator(rows: PatternRows) -> Counts:
    """Punctuation and control tokens, without the first token, which receives attention for other reasons."""
    assert rows.separators is not None
    keys = np.arange(rows.visible.shape[-1])
    return (rows.separators & (keys != rows.first[:, None]))[:, None, :]


SELF_PATTERNS: dict[str, Pattern] = {
    "previous": previous,
    "itself": itself,
    "first": first,
    "same": same,
    "induction": induction,
    "local": local,
    "separator": separator,
}
"""Patterns of self-attention."""
SHIFTED: dict[str, Pattern] = {f"induction{shift:+d}": shifted_induction(shift) for shift in SHIFTS}
"""Also of self-attention; a head gets the best score of these."""
CROSS_PATTERNS: dict[str, Pattern] = {"first": first_in_cross, "separator": separator}
"""Patterns of cross-attention."""
TOKEN_PATTERNS = {"same", "induction", "separator", *SHIFTED}
"""Patterns that need the tokens."""


# --- registered patterns ----------------------------------------------------------------------------------


class Registered(NamedTuple):
    """A pattern added by `register`."""

    function: Pattern
    label: Mapping[Language, str]
    across: bool
    """Whether it is a pattern of cross-attention; else of self-attention."""
    needs_tokens: bool


_registered: dict[str, Registered] = {}


def register(
    name: str,
    function: Callable[[PatternRows], Any],
    *,
    label: str | Mapping[Language, str] | None = None,
    across: bool = False,
    needs_tokens: bool = False,
) -> None:
    """Add a pattern, so that `Trace.heads` scores every head for it.

    function       takes PatternRows and returns a factor for each query and key: 0 to 1, or booleans, of a shape that
                   broadcasts to B r S
    label          the text for such heads in the table, one text or {"en": …, "zh": …}; the name by default
    across         whether it is a pattern of cross-attention
    needs_tokens   whether it reads `tokens`, `separators` or `texts`; records without tokens are then left out

    Registering the same name again replaces the pattern.

    >>> register("even-places", lambda rows: np.arange(rows.visible.shape[-1]) % 2 == 0)
    >>> "even-places" in names()
    True
    >>> unregister("even-places")
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w+.-]*", name):
        raise ArgumentError("pattern-name", found=name)
    if name in (*SELF_PATTERNS, ALIGNMENT) or is_family(name):
        raise ArgumentError("pattern-taken", asked=name)
    if not callable(function):
        raise ArgumentError("pattern-function", asked=name, found=type(function).__name__)
    given: Mapping[Any, str] = label if isinstance(label, Mapping) else {}
    both = {lang: str(given.get(lang, name if label is None or given else label)) for lang in ("en", "zh")}
    _registered[name] = Registered(function, both, across, needs_tokens)  # type: ignore[arg-type]


def unregister(name: str) -> None:
    """Remove a registered pattern."""
    if name not in _registered:
        raise UnknownNameError("pattern-unregistered", asked=name, patterns=Listed(_registered))
    del _registered[name]


def names() -> tuple[str, ...]:
    """The names of all patterns without a number: the built-in ones, then the registered ones."""
    return (*SELF_PATTERNS, ALIGNMENT, *_registered)


def is_family(name: str) -> bool:
    """Whether the name is one of a family with a number, such as back-4, ahead-1 or induction+2."""
    return bool(_OFFSET.fullmatch(name)) or name in SHIFTED


def offset_of(name: str) -> int | None:
    """The number of places back of a back-K or ahead-K pattern, negative for ahead; None for other patterns.

    >>> offset_of("back-4"), offset_of("ahead-1"), offset_of("local")
    (4, -1, None)
    """
    found = _OFFSET.fullmatch(name)
    if found is None:
        return None
    return int(found[2]) if found[1] == "back" else -int(found[2])


def check_name(name: str) -> None:
    """Raise UnknownNameError, which lists all names, if there is no such pattern."""
    if not isinstance(name, str) or (name not in names() and not is_family(name)):
        known = Listed([*names(), "back-2", "ahead-1", "induction+2"])
        raise UnknownNameError("pattern-unknown", asked=name, patterns=known)


def label_of(name: str, lang: Language | None = None) -> str:
    """The label that describes what a head with this pattern attends to.

    >>> label_of("back-4", "en"), label_of("induction+2", "zh")
    ('4 tokens back (back-4)', '此词元上次出现处之后第 2 个词元 induction+2')
    """
    lang = lang or language()
    if name in _registered:
        return _registered[name].label[lang]
    offset, shifted = offset_of(name), _SHIFTED.fullmatch(name)
    if offset is not None:
        side = "next" if offset == -1 else "back" if offset > 0 else "ahead"
        return say(f"pattern-{side}", lang, count=abs(offset), name=name)
    if shifted is not None:
        return say(f"pattern-shifted-{'after' if shifted[1][0] == '+' else 'before'}", lang, count=shifted[1][1:])
    return say(f"pattern-{name}", lang)


def patterns_for(across: bool, named: bool) -> dict[str, Pattern]:
    """The patterns that can be measured on a record: cross-attention or self-attention, with tokens or without."""
    built_in = CROSS_PATTERNS if across else SELF_PATTERNS | SHIFTED
    own = {
        name: _checked(name, pattern.function)
        for name, pattern in _registered.items()
        if pattern.across == across and (named or not pattern.needs_tokens)
    }
    return {name: pattern for name, pattern in built_in.items() if named or name not in TOKEN_PATTERNS} | own


def _checked(name: str, function: Callable[[PatternRows], Any]) -> Pattern:
    """The function with a check of its results."""

    def pattern(rows: PatternRows) -> Counts:
        counts = np.asarray(function(rows))
        wanted = rows.visible.shape
        is_number = counts.dtype.kind in "bif"
        try:
            fits = np.broadcast_shapes(counts.shape, wanted) == wanted
        except ValueError:
            fits = False
        if not is_number or not fits:
            raise ArgumentError("pattern-shape", asked=name, dtype=counts.dtype, found=counts.shape, wanted=wanted)
        if not bool(((counts >= 0) & (counts <= 1)).all()):
            raise ArgumentError("pattern-values", asked=name)
        return counts

    return pattern


# --- helpers ----------------------------------------------------------------------------------------------


def _at(rows: PatternRows, keys: np.ndarray) -> np.ndarray:
    """One key for each row, 1 r S."""
    return (np.arange(rows.visible.shape[-1]) == keys[:, None])[None]


def _equal(rows: PatternRows) -> np.ndarray:
    """Where key and query are the same token, B r S."""
    assert rows.tokens is not None
    own = rows.tokens[:, rows.places, None]
    return (rows.tokens[:, None, :] == own) & (own >= 0)


def is_separator(token: str) -> bool:
    """Whether a token is punctuation, the end of a line, or a control token such as `</s>` and `[SEP]`.

    >>> [token for token in ("cat", ".", "Ġ,", "。", "[SEP]", "</s>", "\\n", "", "3", "▁") if is_separator(token)]
    ['.', 'Ġ,', '。', '[SEP]', '</s>', '\\n']
    """
    bare = token.strip(_MARKS)
    if _CONTROL.fullmatch(bare):
        return True
    return bool(bare) and all(sign in _ENDS or unicodedata.category(sign)[0] == "P" for sign in bare)


def is_word(token: str) -> bool:
    """Whether a token is part of the text, punctuation included: not empty and not a control token.

    >>> [token for token in ("cat", ".", "[SEP]", "</s>", "") if is_word(token)]
    ['cat', '.']
    """
    bare = token.strip(_MARKS)
    return bool(bare) and not _CONTROL.fullmatch(bare)


def numbered(tokens: tuple[tuple[str, ...], ...], samples: int) -> np.ndarray:
    """Tokens as numbers, B S, equal where they are the same; -1 for an empty one, which is padding.

    >>> numbered((("a", "b", "a", ""),), 1)
    array([[ 0,  1,  0, -1]])
    """
    known: dict[str, int] = {}
    rows = [[known.setdefault(token, len(known)) if token else -1 for token in row] for row in tokens]
    return np.broadcast_to(np.array(rows, int), (samples, len(tokens[0])))
