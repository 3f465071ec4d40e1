"""What heads are known to do, each as the keys that such a head attends to; and `register` for patterns of your own.

    previous      the token before                                    Voita et al. 2019 ("positional heads")
    itself        the token itself                                    Clark et al. 2019, section 3.1
    first         the first token, which holds what is left over      Xiao et al. 2024 ("attention sinks")
    same          the same token wherever else it stands              Wang et al. 2023 ("duplicate token heads")
    induction     what came after the same token earlier              Olsson et al. 2022
    local         at most three places away                           Kovaleva et al. 2019 ("diagonal")
    separator     punctuation, ends of lines, control tokens          Clark et al. 2019, section 3.2
    back-K        the token K places before, K ≥ 2; ahead-K the token K places behind
    induction+K   the token K places after the same token earlier, K ≥ 2; induction-K the token K places before it

A pattern says how much the weight on each key counts: 1 on its keys, 0 elsewhere. Only `same` counts more, because the
token itself is the same token too: a head that looks evenly at all n of them is to score 1, and one that looks at
itself alone 0, so the n − 1 others count n / (n − 1), and a row at most 1.

back-K and ahead-K are measured for all K at once, from sums along the diagonals (`trace.measures.scoring`).
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Language, Listed, language, say

NEAR = 3
"""How far a local head looks."""
SHIFTS = (*range(-8, 0), *range(2, 9))
"""How far beside the earlier token a shifted induction head looks; 0 is `same`, 1 is `induction`."""
ALIGNMENT = "alignment"
"""In cross-attention, a key of its own for each query: no set of keys, so it is measured beside the patterns."""
_MARKS = "Ġ▁ "
"""How tokenizers write the space before a word."""
_CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")
_ENDS = "\n\rĊ|｜"
"""What ends a line, also as GPT-2 writes it, or stands between columns, and is no punctuation to Unicode."""
_OFFSET = re.compile(r"(back|ahead)-([1-9][0-9]{0,8})")
_SHIFTED = re.compile(r"induction([+-][1-9])")


class View(NamedTuple):
    """What a pattern is told of some rows of a record."""

    places: np.ndarray
    """r: where the queries stand among the keys; in cross-attention, of no use."""
    seen: np.ndarray
    """B r S: which keys each query may look at."""
    first: np.ndarray
    """B: the first key of each text."""
    tokens: np.ndarray | None
    """B S: the keys as numbers, equal where the tokens are, -1 for none; None where nobody named them."""
    separators: np.ndarray | None
    """B S: which keys are separators."""
    texts: tuple[tuple[str, ...], ...] | None = None
    """The keys as they are written, a row for each sample, or one for all; None where nobody named them."""


Counts = np.ndarray
"""B r S, or what broadcasts to it."""
Pattern = Callable[[View], Counts]


def previous(view: View) -> Counts:
    """The token before."""
    return _at(view, view.places - 1)


def itself(view: View) -> Counts:
    """The token itself."""
    return _at(view, view.places)


def first(view: View) -> Counts:
    """The first token, for all that are not it."""
    keys = np.arange(view.seen.shape[-1])
    return (keys == view.first[:, None, None]) & ~_at(view, view.places)


def first_of_another(view: View) -> Counts:
    """The same in cross-attention, where no query is a key."""
    return np.arange(view.seen.shape[-1]) == view.first[:, None, None]


def same(view: View) -> Counts:
    """The same token elsewhere."""
    own = _at(view, view.places)
    equal = _equal(view) & view.seen
    others = equal & ~own
    count = others.sum(-1, keepdims=True)
    every = equal.sum(-1, keepdims=True)
    return others * (every / np.maximum(count, 1))


def induction(view: View) -> Counts:
    """What came after the same token earlier."""
    earlier = _equal(view) & (np.arange(view.seen.shape[-1]) < view.places[:, None])
    after = np.zeros_like(earlier)
    after[..., 1:] = earlier[..., :-1]
    return after & ~_at(view, view.places)


def shifted_induction(shift: int) -> Pattern:
    """So many places after the same token earlier, or before it where `shift` is below 0."""

    def pattern(view: View) -> Counts:
        keys = np.arange(view.seen.shape[-1])
        earlier = _equal(view) & (keys < view.places[:, None])
        moved = np.zeros_like(earlier)
        if shift > 0:
            moved[..., shift:] = earlier[..., :-shift]
        else:
            moved[..., :shift] = earlier[..., -shift:]
        return moved & (keys < view.places[:, None])

    return pattern


def local(view: View) -> Counts:
    """At most so many places away."""
    return np.abs(np.arange(view.seen.shape[-1]) - view.places[:, None])[None] <= NEAR


def separator(view: View) -> Counts:
    """Punctuation and the like; the first token is looked at for other reasons."""
    assert view.separators is not None
    keys = np.arange(view.seen.shape[-1])
    return (view.separators & (keys != view.first[:, None]))[:, None, :]


WITHIN: dict[str, Pattern] = {
    "previous": previous,
    "itself": itself,
    "first": first,
    "same": same,
    "induction": induction,
    "local": local,
    "separator": separator,
}
"""Of a text that looks at itself."""
SHIFTED: dict[str, Pattern] = {f"induction{shift:+d}": shifted_induction(shift) for shift in SHIFTS}
"""The same; of these, a head has the score of the best."""
ACROSS: dict[str, Pattern] = {"first": first_of_another, "separator": separator}
"""Of a text that looks at another."""
OF_TOKENS = {"same", "induction", "separator", *SHIFTED}
"""Those that need to know the tokens."""


# --- patterns of your own ---------------------------------------------------------------------------------


class Registered(NamedTuple):
    """A pattern that somebody has registered."""

    function: Pattern
    label: Mapping[Language, str]
    across: bool
    """Whether it is of cross-attention; else of a text that looks at itself."""
    needs_tokens: bool


_registered: dict[str, Registered] = {}


def register(
    name: str,
    function: Callable[[View], Any],
    *,
    label: str | Mapping[Language, str] | None = None,
    across: bool = False,
    needs_tokens: bool = False,
) -> None:
    """Let `Trace.heads` score every head for a pattern of your own, too.

    function       from a View of some rows to how much each key counts for each query: 0 to 1, or True and False, of a
                   shape that broadcasts to B r S
    label          what the table says of such heads, one text or {"en": …, "zh": …}; the name itself without it
    across         whether it is a pattern of cross-attention
    needs_tokens   whether it reads `tokens`, `separators` or `texts`: records without tokens are then left out

    A name of your own may be registered again, which replaces it.

    >>> register("even-places", lambda view: np.arange(view.seen.shape[-1]) % 2 == 0)
    >>> "even-places" in names()
    True
    >>> unregister("even-places")
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w+.-]*", name):
        raise ArgumentError("pattern-name", found=name)
    if name in (*WITHIN, ALIGNMENT) or is_family(name):
        raise ArgumentError("pattern-taken", asked=name)
    if not callable(function):
        raise ArgumentError("pattern-function", asked=name, found=type(function).__name__)
    spoken: Mapping[Any, str] = label if isinstance(label, Mapping) else {}
    both = {lang: str(spoken.get(lang, name if label is None or spoken else label)) for lang in ("en", "zh")}
    _registered[name] = Registered(function, both, across, needs_tokens)  # type: ignore[arg-type]


def unregister(name: str) -> None:
    """Forget a pattern of your own."""
    if name not in _registered:
        raise UnknownNameError("pattern-unregistered", asked=name, patterns=Listed(_registered))
    del _registered[name]


def names() -> tuple[str, ...]:
    """The patterns that have a name of their own: the built-in ones, then the registered ones."""
    return (*WITHIN, ALIGNMENT, *_registered)


def is_family(name: str) -> bool:
    """Whether the name is one of a family with a number, such as back-4, ahead-1 or induction+2."""
    return bool(_OFFSET.fullmatch(name)) or name in SHIFTED


def offset_of(name: str) -> int | None:
    """How many places back such a head attends, below 0 for ahead; None for other patterns.

    >>> offset_of("back-4"), offset_of("ahead-1"), offset_of("local")
    (4, -1, None)
    """
    found = _OFFSET.fullmatch(name)
    if found is None:
        return None
    return int(found[2]) if found[1] == "back" else -int(found[2])


def check_name(asked: str) -> None:
    """UnknownNameError with the names of all, where there is no such pattern."""
    if not isinstance(asked, str) or (asked not in names() and not is_family(asked)):
        known = Listed([*names(), "back-2", "ahead-1", "induction+2"])
        raise UnknownNameError("pattern-unknown", asked=asked, patterns=known)


def label_of(name: str, lang: Language | None = None) -> str:
    """What a reader is told that a head with this pattern attends to.

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


def chosen(across: bool, named: bool) -> dict[str, Pattern]:
    """The patterns that a record can be asked for: across two texts or within one, with tokens or without."""
    built_in = ACROSS if across else WITHIN | SHIFTED
    own = {
        name: _checked(name, pattern.function)
        for name, pattern in _registered.items()
        if pattern.across == across and (named or not pattern.needs_tokens)
    }
    return {name: pattern for name, pattern in built_in.items() if named or name not in OF_TOKENS} | own


def _checked(name: str, function: Callable[[View], Any]) -> Pattern:
    """The function, its answers held against what a pattern may answer."""

    def pattern(view: View) -> Counts:
        counts = np.asarray(function(view))
        wanted = view.seen.shape
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


# --- pieces of patterns -----------------------------------------------------------------------------------


def _at(view: View, keys: np.ndarray) -> np.ndarray:
    """One key for each row, 1 r S."""
    return (np.arange(view.seen.shape[-1]) == keys[:, None])[None]


def _equal(view: View) -> np.ndarray:
    """Where key and query are the same token, B r S."""
    assert view.tokens is not None
    own = view.tokens[:, view.places, None]
    return (view.tokens[:, None, :] == own) & (own >= 0)


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
    """Whether a token is a part of the text, punctuation too, and no control token, nor nothing.

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
