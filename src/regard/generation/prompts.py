"""Parsing, checking and padding of prompts before a model runs: ids, number of texts, lengths.

Lists, lists of lists and arrays become lists of ints. No model runs here.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from regard.arrays import is_integer, is_tensor, to_numpy
from regard.errors import ArgumentError
from regard.generation.decoding import Decoding

Ids: TypeAlias = int | Iterable[int] | None
"""One id, several, or none."""


class PromptRows(NamedTuple):
    """Texts as ids; `is_single` if one flat prompt was given, so that one flat result is returned."""

    ids: list[list[int]]
    is_single: bool

    @property
    def longest(self) -> int:
        """The length of the longest text."""
        return max(len(row) for row in self.ids)

    @property
    def shortest(self) -> int:
        """The length of the shortest text."""
        return min(len(row) for row in self.ids)


def parse_prompts(given: Any, name: str = "prompts") -> PromptRows:
    """The prompts as rows of ints. Raises ArgumentError for anything else.

    >>> parse_prompts([[1, 2], [3]]), parse_prompts(np.array([1, 2]))
    (PromptRows(ids=[[1, 2], [3]], is_single=False), PromptRows(ids=[[1, 2]], is_single=True))
    """
    given = _plain(given, name)
    is_single = bool(given) and all(is_integer(each) for each in given)
    rows = [given] if is_single else [_plain(row, f"{name}[{i}]") for i, row in enumerate(given)]
    if not rows:
        raise ArgumentError("prompt-empty", where=name)
    for i, row in enumerate(rows):
        where = name if is_single else f"{name}[{i}]"
        if len(row) == 0:
            raise ArgumentError("prompt-empty", where=where)
        for at, value in enumerate(row):
            if not is_integer(value):
                raise ArgumentError("prompt-kind", where=f"{where}[{at}]", found=repr(value))
    return PromptRows([[int(value) for value in row] for row in rows], is_single)


def _plain(given: Any, where: str) -> list[Any]:
    """The given value as a list; an array must have an integer dtype."""
    if is_tensor(given) or isinstance(given, np.ndarray):
        array = to_numpy(given)
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
            raise ArgumentError("prompt-kind", where=where, found=f"{array.dtype} {array.shape}")
        return list(array.tolist())
    if not isinstance(given, list | tuple | range):
        raise ArgumentError("prompt-kind", where=where, found=repr(given))
    return list(given)


def left_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """A batch (B, T) padded on the left, and a boolean array that is False for padding; None without padding.

    >>> ids, keep = left_padded([[5, 6], [7]])
    >>> ids.tolist(), keep.tolist()
    ([[5, 6], [0, 7]], [[True, True], [False, True]])
    """
    ids, keep = right_padded([row[::-1] for row in rows])
    return ids[:, ::-1].copy(), None if keep is None else keep[:, ::-1].copy()


def right_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """A batch (B, S) padded on the right, as for an encoder, and a boolean array that is False for padding.

    >>> right_padded([[5, 6], [7]])[0].tolist()
    [[5, 6], [7, 0]]
    """
    lengths = np.array([len(row) for row in rows])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, dtype=np.int64)
    ids[keep] = np.concatenate(rows)
    return ids, None if keep.all() else keep


def check_ids(rows: PromptRows, vocab_size: int, name: str = "prompts") -> None:
    """ArgumentError with the place of an id that is not in the vocabulary."""
    for i, row in enumerate(rows.ids):
        if min(row) >= 0 and max(row) < vocab_size:
            continue
        at = next(at for at, id in enumerate(row) if not 0 <= id < vocab_size)
        where = name if rows.is_single else f"{name}[{i}]"
        raise ArgumentError("prompt-id", where=f"{where}[{at}]", value=row[at], last=vocab_size - 1, W=vocab_size)


def eos_ids(eos: Ids, decoding: Decoding, rows: PromptRows, max_new: int) -> tuple[int, ...]:
    """The ids that end a text. Raises ArgumentError if they, the prompts or `max_new` do not fit the decoding."""
    check_ids(rows, decoding.vocab_size)
    check_length(decoding, rows.longest, max_new)
    return special_ids(eos, "eos", decoding.vocab_size)


def special_ids(given: Ids, name: str, vocab_size: int) -> tuple[int, ...]:
    """One id, several or none as a tuple. Raises ArgumentError for an id outside the vocabulary."""
    plain: Any = to_numpy(given).tolist() if is_tensor(given) or isinstance(given, np.ndarray) else given
    several = () if plain is None else tuple(plain) if isinstance(plain, Iterable) else (plain,)
    for id in several:
        if not (is_integer(id) and 0 <= id < vocab_size):
            raise ArgumentError("special-id", name=name, value=id, last=vocab_size - 1, W=vocab_size)
    return tuple(int(id) for id in several)


def check_length(decoding: Decoding, length: int, max_new: int = 1, already: int = 0) -> None:
    """ArgumentError if `length` ids after those `already` read, and the generated ones, exceed the model's positions.

    The last new id is returned but never read, so n ids with max_new more need n + max_new − 1 positions.
    """
    limit, length = decoding.max_len, already + length
    if limit is None or length + max_new - 1 <= limit:
        return
    if length > limit:
        raise ArgumentError("prompt-too-long", length=length, limit=limit, excess=length - limit)
    needed, most = length + max_new - 1, limit - length + 1
    raise ArgumentError("no-room", length=length, max_new=max_new, needed=needed, limit=limit, most=most)
