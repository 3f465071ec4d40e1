"""Deterministic sampling by hashes of the text: the same data gives the same files on every machine."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def share(key: str) -> float:
    """A pseudo-random number from 0 to below 1 that depends only on the text.

    >>> share("I love you.") == share("I love you."), 0 <= share("") < 1
    (True, True)
    """
    return int.from_bytes(blake2b(key.encode(), digest_size=6).digest()) / 2**48


def draw(items: Sequence[T], count: int, key: str) -> list[T]:
    """`count` different items, or all if there are fewer.

    >>> draw([1, 2], 3, key="x")
    [1, 2]
    """
    if len(items) <= count:
        return list(items)
    found: dict[int, T] = {}
    turn = 0
    while len(found) < count:
        at = int(share(f"{key} {turn}") * len(items))
        found[at], turn = items[at], turn + 1
    return list(found.values())
