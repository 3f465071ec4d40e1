"""Prompts as people give them, looked at before anything runs: which ids, how many texts, is there room.

Lists, lists of lists and arrays become plain rows of ints. Nothing here runs a model.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from regard.arrays import is_tensor, is_whole, to_numpy
from regard.errors import ArgumentError
from regard.generation.decoding import Decoding

Ids: TypeAlias = int | Iterable[int] | None
"""One id, several, or none."""


class Rows(NamedTuple):
    """Texts as ids; `alone` where one was given flat, so that one flat answer goes back."""

    ids: list[list[int]]
    alone: bool

    @property
    def longest(self) -> int:
        """The length of the longest text."""
        return max(len(row) for row in self.ids)

    @property
    def shortest(self) -> int:
        """The length of the shortest text."""
        return min(len(row) for row in self.ids)


def rows_of(given: Any, name: str = "prompts") -> Rows:
    """What was given as rows of ints, or an ArgumentError that says what is wrong with it.

    >>> rows_of([[1, 2], [3]]), rows_of(np.array([1, 2]))
    (Rows(ids=[[1, 2], [3]], alone=False), Rows(ids=[[1, 2]], alone=True))
    """
    given = _plain(given, name)
    alone = bool(given) and all(is_whole(each) for each in given)
    rows = [given] if alone else [_plain(row, f"{name}[{i}]") for i, row in enumerate(given)]
    if not rows:
        raise ArgumentError("prompt-empty", where=name)
    for i, row in enumerate(rows):
        where = name if alone else f"{name}[{i}]"
        if len(row) == 0:
            raise ArgumentError("prompt-empty", where=where)
        for at, value in enumerate(row):
            if not is_whole(value):
                raise ArgumentError("prompt-kind", where=f"{where}[{at}]", found=repr(value))
    return Rows([[int(value) for value in row] for row in rows], alone)


def _plain(given: Any, where: str) -> list[Any]:
    """A list of what was given; arrays must hold whole numbers, which their dtype alone tells."""
    if is_tensor(given) or isinstance(given, np.ndarray):
        array = to_numpy(given)
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
            raise ArgumentError("prompt-kind", where=where, found=f"{array.dtype} {array.shape}")
        return list(array.tolist())
    if not isinstance(given, list | tuple | range):
        raise ArgumentError("prompt-kind", where=where, found=repr(given))
    return list(given)


def left_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """One batch (B, T) whose texts end together, and which of it counts: None where all of it does.

    >>> ids, keep = left_padded([[5, 6], [7]])
    >>> ids.tolist(), keep.tolist()
    ([[5, 6], [0, 7]], [[True, True], [False, True]])
    """
    ids, keep = right_padded([row[::-1] for row in rows])
    return ids[:, ::-1].copy(), None if keep is None else keep[:, ::-1].copy()


def right_padded(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray | None]:
    """One batch (B, S) whose texts begin together, as an encoder reads them, and which of it counts.

    >>> right_padded([[5, 6], [7]])[0].tolist()
    [[5, 6], [7, 0]]
    """
    lengths = np.array([len(row) for row in rows])
    keep = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(keep.shape, dtype=np.int64)
    ids[keep] = np.concatenate(rows)
    return ids, None if keep.all() else keep


def check_ids(rows: Rows, vocab_size: int, name: str = "prompts") -> None:
    """Every id is in the vocabulary, or an ArgumentError that says which is not, and where."""
    for i, row in enumerate(rows.ids):
        if min(row) >= 0 and max(row) < vocab_size:
            continue
        at = next(at for at, id in enumerate(row) if not 0 <= id < vocab_size)
        where = name if rows.alone else f"{name}[{i}]"
        raise ArgumentError("prompt-id", where=f"{where}[{at}]", value=row[at], last=vocab_size - 1, W=vocab_size)


def ends_of(eos: Ids, decoding: Decoding, rows: Rows, max_new: int) -> tuple[int, ...]:
    """The ids that end a text, once these, the prompts and what is generated are known to fit the decoding."""
    check_ids(rows, decoding.vocab_size)
    check_room(decoding, rows.longest, max_new)
    return special_ids(eos, "eos", decoding.vocab_size)


def special_ids(given: Ids, name: str, vocab_size: int) -> tuple[int, ...]:
    """One id, several or none as a tuple, each of them in the vocabulary."""
    plain: Any = to_numpy(given).tolist() if is_tensor(given) or isinstance(given, np.ndarray) else given
    several = () if plain is None else tuple(plain) if isinstance(plain, Iterable) else (plain,)
    for id in several:
        if not (is_whole(id) and 0 <= id < vocab_size):
            raise ArgumentError("special-id", name=name, value=id, last=vocab_size - 1, W=vocab_size)
    return tuple(int(id) for id in several)


def check_room(decoding: Decoding, length: int, max_new: int = 1, already: int = 0) -> None:
    """There are positions for `length` ids after those `already` read, and for what is generated.

    The last new id is given out and never read, so n ids with max_new more need n + max_new − 1 positions.
    """
    limit, length = decoding.max_len, already + length
    if limit is None or length + max_new - 1 <= limit:
        return
    if length > limit:
        raise ArgumentError("prompt-too-long", length=length, limit=limit, excess=length - limit)
    needed, most = length + max_new - 1, limit - length + 1
    raise ArgumentError("no-room", length=length, max_new=max_new, needed=needed, limit=limit, most=most)
