"""A Mask as a JSON tree with arrays, and back. A rule is stored by name; no name leads to an import.

This module does not open files: arrays are passed in and referred to by number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from regard.arrays import to_numpy
from regard.masks import Mask
from regard.masks.combined import And, Not, Or
from regard.masks.rules import Band, Dense, Keys, Prefix, Rule, Segments

DEEPEST, MOST_RULES = 64, 1024
LARGEST = 2**62
"""The largest number in a rule: larger than any position, and small enough that NumPy can add one to it."""


class MaskTreeError(ValueError):
    """A tree that is no mask; the reader of the file raises the error for the user."""


def mask_tree(mask: Mask) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The mask as JSON, and the arrays that its numbers refer to.

    >>> mask_tree(Mask.prefix(2))
    ({'name': 'Mask.prefix(2)', 'rule': {'is': 'prefix', 'count': 2}}, [])
    """
    arrays: list[np.ndarray] = []

    def number(array: Any) -> int:
        arrays.append(to_numpy(array))
        return len(arrays) - 1

    return {"name": mask.name, "rule": _tree(mask.rule, number)}, arrays


def _tree(rule: Rule, number: Callable[[Any], int]) -> dict[str, Any]:
    match rule:
        case Band(left=left, right=right, from_first=from_first):
            return {"is": "band", "left": left, "right": right, "from_first": from_first}
        case Prefix(count=count) if isinstance(count, int):
            return {"is": "prefix", "count": count}
        case Prefix(count=counts):
            return {"is": "prefix", "counts": number(counts)}
        case Keys(keep=keep):
            return {"is": "keys", "keep": number(keep)}
        case Segments(keys=keys, queries=queries):
            return {
                "is": "segments",
                "keys": number(keys),
                "queries": None if queries is None else number(queries),
            }
        case Dense(allowed=allowed, per_sample=per_sample):
            return {"is": "dense", "allowed": number(allowed), "per_sample": per_sample}
        case Not(rule=inner):
            return {"is": "not", "rule": _tree(inner, number)}
        case Or(rules=rules):
            return {"is": "either", "rules": [_tree(part, number) for part in rules]}
        case And(rules=rules):
            return {"is": "both", "rules": [_tree(part, number) for part in rules]}
    raise AssertionError(f"a rule without a name in the file format: {type(rule).__name__}")


def mask_of(tree: Any, array: Callable[[int], np.ndarray]) -> Mask:
    """The mask that `mask_tree` wrote; MaskTreeError where the tree is invalid."""
    if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
        raise MaskTreeError
    _check_size(tree.get("rule"))
    return Mask(_rule(tree.get("rule"), array), tree["name"])


def _check_size(tree: Any) -> None:
    """Raise MaskTreeError where rules are nested deeper, or are more, than in any real mask."""
    level, count = [tree], 0
    for _ in range(DEEPEST):
        level = [part for one in level if isinstance(one, dict) for part in (one.get("rule"), *_list(one.get("rules")))]
        level = [part for part in level if isinstance(part, dict)]
        count += len(level)
        if not level:
            return
        if count > MOST_RULES:
            break
    raise MaskTreeError


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _rule(tree: Any, array: Callable[[int], np.ndarray]) -> Rule:
    def numbered(key: str, kinds: str, axes: int) -> np.ndarray:
        found = array(_integer(tree.get(key)))
        if found.dtype.kind not in kinds or found.ndim < axes:
            raise MaskTreeError
        return found

    match tree:
        case {"is": "band", "left": left, "right": right, "from_first": bool(from_first)}:
            return Band(_integer_or_none(left), _integer_or_none(right), from_first)
        case {"is": "prefix", "count": count}:
            return Prefix(_integer(count))
        case {"is": "prefix"}:
            return Prefix(numbered("counts", "iub", 1))
        case {"is": "keys"}:
            return Keys(numbered("keep", "b", 1))
        case {"is": "segments", "queries": queries}:
            ids = None if queries is None else numbered("queries", "iub", 1)
            return Segments(numbered("keys", "iub", 1), ids)
        case {"is": "dense", "per_sample": bool(per_sample)}:
            return Dense(numbered("allowed", "b", 3 if per_sample else 2), per_sample)
        case {"is": "not", "rule": inner}:
            return Not(_rule(inner, array))
        case {"is": "both" | "either" as name, "rules": [*rules]} if rules:
            combined = And if name == "both" else Or
            return combined(tuple(_rule(part, array) for part in rules))
    raise MaskTreeError


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise MaskTreeError
    return value


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else _integer(value)
