"""What heads are known to do, each as the keys that such a head looks at.

    previous    the token before                                    Voita et al. 2019 ("positional heads")
    itself      the token itself                                    Clark et al. 2019, section 3.1
    first       the first token, which holds what is left over      Xiao et al. 2024 ("attention sinks")
    same        the same token wherever else it stands              Wang et al. 2023 ("duplicate token heads")
    induction   what came after the same token earlier              Olsson et al. 2022
    local       at most three places away                           Kovaleva et al. 2019 ("diagonal")
    separator   punctuation, ends of lines, control tokens          Clark et al. 2019, section 3.2

A pattern says how much the weight on each key counts: 1 on its keys, 0 elsewhere. Only `same` counts more, because the
token itself is the same token too: a head that looks evenly at all n of them is to score 1, and one that looks at
itself alone 0, so the n − 1 others count n / (n − 1), and a row at most 1.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NEAR = 3
"""How far a local head looks."""
_MARKS = "Ġ▁ "
"""How tokenizers write the space before a word."""
_CONTROL = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")
_ENDS = "\n\rĊ|｜"
"""What ends a line, also as GPT-2 writes it, or stands between columns, and is no punctuation to Unicode."""


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
ACROSS: dict[str, Pattern] = {"first": first_of_another, "separator": separator}
"""Of a text that looks at another; `alignment`, which is no set of keys, is measured beside them."""
OF_TOKENS = {"same", "induction", "separator"}
"""Those that need to know the tokens."""


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


def numbered(tokens: tuple[tuple[str, ...], ...], samples: int) -> np.ndarray:
    """Tokens as numbers, B S, equal where they are the same; -1 for an empty one, which is padding.

    >>> numbered((("a", "b", "a", ""),), 1)
    array([[ 0,  1,  0, -1]])
    """
    known: dict[str, int] = {}
    rows = [[known.setdefault(token, len(known)) if token else -1 for token in row] for row in tokens]
    return np.broadcast_to(np.array(rows, int), (samples, len(tokens[0])))
