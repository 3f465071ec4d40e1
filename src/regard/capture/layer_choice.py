"""Which modules a person means by `layers`: whole names, ends of names, patterns, numbers of layers."""

from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from typing import Any

from regard.errors import ArgumentError, UnknownNameError

ALIKE = 0.6
"""How like a name must be to be suggested, from 0 to 1: less misleads. It is what `difflib` takes."""


class Chosen:
    """Some modules of a model, and whatever is inside them; all of them where nothing was chosen.

    `layers` are asked for among `names`. UnknownNameError for what fits none, with the nearest
    name, or the numbers that there are.

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
        return layers_numbered(item, names)
    item = item.partition("#")[0]  # the name of a record: a module's later calls have a number
    fitting = [name for name in names if name == item or name.endswith(f".{item}")]
    fitting = fitting or [name for name in names if fnmatchcase(name, item) or fnmatchcase(name, f"*.{item}")]
    if not fitting:
        raise unknown(item, names)
    return fitting


def layers_numbered(asked: int, names: list[str]) -> list[str]:
    """The modules with that number in the outermost lists: in T5, `block.1` and not `block.0.layer.1`.

    Below 0 one counts from the end of each list: an encoder and a decoder may not be of one length.
    """
    lists: dict[str, dict[int, str]] = {}
    for name in names:
        outside, _, last = name.rpartition(".")
        if last.isdecimal() and not any(part.isdecimal() for part in outside.split(".")):
            lists.setdefault(outside, {})[int(last)] = name
    if not lists:
        raise UnknownNameError("watch-layers-unnumbered", asked=asked)
    wanted = [(layers, asked if asked >= 0 else max(layers) + 1 + asked) for layers in lists.values()]
    found = [layers[number] for layers, number in wanted if number in layers]
    if not found:
        numbers = [number for layers in lists.values() for number in layers]
        raise UnknownNameError("watch-layer-number", asked=asked, first=min(numbers), last=max(numbers))
    return found


def unknown(asked: str, names: Sequence[str]) -> UnknownNameError:
    """What to say of a name that nobody bears: with the one that was meant, if any is like it."""
    meant = nearest(asked, names)
    if meant is None:
        return UnknownNameError("watch-layer-unlike", asked=asked)
    return UnknownNameError("watch-layer-unknown", asked=asked, nearest=meant)


def nearest(asked: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant: one that has it inside, else the one whose end is most like it.

    >>> nearest("h.7.atn", ["transformer.h.6.attn", "transformer.h.7.attn", "transformer.h.7.mlp"])
    'transformer.h.7.attn'
    >>> nearest("h.7.atn", ["out"]) is None
    True
    """
    inside = [name for name in names if asked in name]
    if inside:
        return min(inside, key=len)
    parts = asked.count(".") + 1

    def likeness(name: str) -> float:
        return SequenceMatcher(None, asked, ".".join(name.split(".")[-parts:])).ratio()

    best = max(reversed(names), key=likeness, default="")  # of equals the last: one counts too far more often
    return best if likeness(best) >= ALIKE else None
