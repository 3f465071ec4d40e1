"""Which modules a person means by `layers`: whole names, ends of names, patterns, numbers of layers."""

from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from typing import Any

from regard.errors import ArgumentError, UnknownNameError


class Chosen:
    """Some modules of a model, and whatever is inside them; all of them where nothing was chosen.

    `layers` are asked for among `names`. UnknownNameError, with the nearest name, for what fits none.

    >>> chosen = Chosen("h.1", ["h", "h.0", "h.0.attn", "h.1", "h.1.attn"])
    >>> "h.1.attn" in chosen, "h.0.attn" in chosen
    (True, False)
    """

    def __init__(self, layers: Any, names: Collection[str]) -> None:
        self._names = None if layers is None else frozenset(_chosen(layers, [name for name in names if name]))

    def __bool__(self) -> bool:
        return self._names is None or bool(self._names)

    def __contains__(self, name: str) -> bool:
        """Whether the module called `name`, or one that it is part of, is meant."""
        if self._names is None:
            return True
        parts = name.split(".")
        return any(".".join(parts[:end]) in self._names for end in range(len(parts), 0, -1))


def _chosen(layers: Any, names: list[str]) -> Iterable[str]:
    asked = [layers] if isinstance(layers, str | int) else layers
    if not isinstance(asked, Iterable):
        raise ArgumentError("watch-layers", found=type(layers).__name__)
    return [name for item in asked for name in _fitting(item, names)]


def _fitting(item: Any, names: list[str]) -> list[str]:
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ArgumentError("watch-layers", found=type(item).__name__)
    if isinstance(item, int):
        fitting = [name for name in names if name.rpartition(".")[2] == str(item)]  # a list's parts are called so
    else:
        item = item.partition("#")[0]  # the name of a record: a module's later calls have a number
        fitting = [name for name in names if name == item or name.endswith(f".{item}")]
        fitting = fitting or [name for name in names if fnmatchcase(name, item) or fnmatchcase(name, f"*.{item}")]
    if not fitting:
        raise UnknownNameError("watch-layer-unknown", asked=item, nearest=nearest(str(item), names))
    return fitting


def nearest(asked: str, names: Sequence[str]) -> str:
    """The name that was most likely meant: one that has it inside, else the one whose end is most like it.

    >>> nearest("h.7.atn", ["transformer.h.6.attn", "transformer.h.7.attn", "transformer.h.7.mlp"])
    'transformer.h.7.attn'
    """
    inside = [name for name in names if asked in name]
    if inside:
        return min(inside, key=len)
    parts = asked.count(".") + 1

    def likeness(name: str) -> float:
        return SequenceMatcher(None, asked, ".".join(name.split(".")[-parts:])).ratio()

    return max(reversed(names), key=likeness, default="")  # of equals the last: one counts too far more often
