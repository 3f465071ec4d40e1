"""The modules that `layers` selects: full names, ends of names, patterns, layer numbers."""

from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from typing import Any

from regard.errors import ArgumentError, UnknownNameError

ALIKE = 0.6
"""How similar a name must be to be suggested, from 0 to 1: less would mislead. The default of `difflib`."""


class ChosenLayers:
    """The chosen modules of a model and all modules inside them; all modules if `layers` is None.

    `layers` are matched against `names`. UnknownNameError if one matches none, with the nearest name or the valid
    numbers.

    >>> chosen = ChosenLayers("h.1", ["h", "h.0", "h.0.attn", "h.1", "h.1.attn"])
    >>> "h.1.attn" in chosen, "h.0.attn" in chosen
    (True, False)
    """

    def __init__(self, layers: Any, names: Collection[str]) -> None:
        self._names = None if layers is None else frozenset(_chosen(layers, [name for name in names if name]))
        self._known: dict[str, bool] = {}
        """Whether a module is chosen: asked for every call."""

    def __bool__(self) -> bool:
        return self._names is None or bool(self._names)

    def __contains__(self, name: str) -> bool:
        """Whether the module called `name`, or one that contains it, is chosen."""
        if self._names is None:
            return True
        found = self._known.get(name)
        if found is None:
            parts = name.split(".")
            found = any(".".join(parts[:end]) in self._names for end in range(len(parts), 0, -1))
            self._known[name] = found
        return found


def _chosen(layers: Any, names: list[str]) -> Iterable[str]:
    requested = [layers] if isinstance(layers, str | int) else layers
    if not isinstance(requested, Iterable):
        raise ArgumentError("watch-layers", found=type(layers).__name__)
    return [name for item in requested for name in _fitting(item, names)]


def _fitting(item: Any, names: list[str]) -> list[str]:
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ArgumentError("watch-layers", found=type(item).__name__)
    if isinstance(item, int):
        return layers_numbered(item, names)
    item = item.partition("#")[0]  # a record's name: later calls of a module have a number
    fitting = [name for name in names if name == item or name.endswith(f".{item}")]
    fitting = fitting or [name for name in names if fnmatchcase(name, item) or fnmatchcase(name, f"*.{item}")]
    if not fitting:
        raise unknown_layer(item, names)
    return fitting


def layers_numbered(requested: int, names: list[str]) -> list[str]:
    """The modules with that number in the outermost lists: in T5, `block.1` and not `block.0.layer.1`.

    Numbers below 0 count from the end of each list: encoder and decoder may differ in length.
    """
    lists: dict[str, dict[int, str]] = {}
    for name in names:
        outside, _, last = name.rpartition(".")
        if last.isdecimal() and not any(part.isdecimal() for part in outside.split(".")):
            lists.setdefault(outside, {})[int(last)] = name
    if not lists:
        raise UnknownNameError("watch-layers-unnumbered", asked=requested)
    wanted = [(layers, requested if requested >= 0 else max(layers) + 1 + requested) for layers in lists.values()]
    found = [layers[number] for layers, number in wanted if number in layers]
    if not found:
        numbers = [number for layers in lists.values() for number in layers]
        raise UnknownNameError("watch-layer-number", asked=requested, first=min(numbers), last=max(numbers))
    return found


def unknown_layer(requested: str, names: Sequence[str]) -> UnknownNameError:
    """The error for an unknown name, with a similar one if there is any."""
    meant = nearest_name(requested, names)
    if meant is None:
        return UnknownNameError("watch-layer-unlike", asked=requested)
    return UnknownNameError("watch-layer-unknown", asked=requested, nearest=meant)


def nearest_name(requested: str, names: Sequence[str]) -> str | None:
    """The name that was most likely meant: one that contains it, else the one with the most similar end.

    >>> nearest_name("h.7.atn", ["transformer.h.6.attn", "transformer.h.7.attn", "transformer.h.7.mlp"])
    'transformer.h.7.attn'
    >>> nearest_name("h.7.atn", ["out"]) is None
    True
    """
    inside = [name for name in names if requested in name]
    if inside:
        return min(inside, key=len)
    parts = requested.count(".") + 1

    def likeness(name: str) -> float:
        return SequenceMatcher(None, requested, ".".join(name.split(".")[-parts:])).ratio()

    # The last of equals, because numbers are more often too large.
    best = max(reversed(names), key=likeness, default="")
    return best if likeness(best) >= ALIKE else None
