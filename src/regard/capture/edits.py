"""What `edit` is asked for, looked at before anything runs: which heads, which edges, which pattern, in which module.

Names and numbers only. What they do to scores and weights is known in `surgery`, when they do it in `editing`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from torch import nn

from regard.capture.choosing import layers_numbered, unknown
from regard.capture.names import Names
from regard.errors import ArgumentError
from regard.kinds import is_tensor, is_whole
from regard.masks import Mask
from regard.records import Record
from regard.trace.weights import record_of
from regard.words import Listed

Edge = tuple[int | None, int, int]
"""Head (None for all), query, key."""


@dataclass(slots=True)
class Edit:
    """One thing asked of one name, and what came of it so far."""

    asked: str
    """The name as it was written, `#number` included, or the number of a layer."""
    modules: frozenset[str]
    number: int | None
    """Which call of the module, counted from 0; None for all of them."""
    heads: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()
    mask: Mask | None = None
    pattern: Record | None = None
    is_layer: bool = False
    """Whether a layer was named by its number, and so the one attention in it."""
    met: set[str] = field(default_factory=set)
    """The modules whose attention it has changed so far."""
    missed: set[Edge] = field(default_factory=set)
    """Edges that lay in no call so far."""
    largest: tuple[int, int] = (0, 0)
    """The most queries and keys that were met, for those whose edges were not."""

    @property
    def cuts(self) -> bool:
        """Whether it hides edges."""
        return self.mask is not None or bool(self.edges)


def asked_for(names: Names, silence: Any, cut: Any, freeze: Any) -> list[Edit]:
    """The edits, each with the modules that its name means. Raises on what cannot be meant."""
    return [
        *(_edit(names, name, heads=_heads(name, heads)) for name, heads in _items("silence", silence, "[3]")),
        *(_edit(names, name, **_cut(name, edges)) for name, edges in _items("cut", cut, "[(7, 0)]")),
        *(_edit(names, name, pattern=_pattern(found)) for name, found in _items("freeze", freeze, "trace[5]")),
    ]


def _items(how: str, given: Any, example: str) -> Iterable[tuple[str | int, Any]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) or is_whole(name) for name in given):
        raise ArgumentError("edit-mapping", how=how, example=example, found=type(given).__name__)
    return given.items()


def _edit(names: Names, asked: str | int, **what: Any) -> Edit:
    if not isinstance(asked, str):
        edit = Edit(str(asked), _modules_in_layer(names, int(asked)), None, is_layer=True, **what)
        edit.missed = set(edit.edges)
        return edit
    name, sign, number = asked.partition("#")
    if sign and not number.isdecimal():
        raise ArgumentError("edit-number", asked=asked)
    edit = Edit(asked, modules_named(names, name), int(number) if sign else None, **what)
    edit.missed = set(edit.edges)
    return edit


def modules_named(names: Names, asked: str) -> frozenset[str]:
    """The modules that a name means: a whole name, the end of one cut at a dot, or a pattern such as `h.*.attn`.

    A layer of `nn.TransformerEncoder` means the attention inside it: a trace of its fused path knows no other name.

    >>> model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 2, enable_nested_tensor=False)
    >>> sorted(modules_named(Names(model), "layers.0")), sorted(modules_named(Names(model), "1.self_attn"))
    (['layers.0.self_attn'], ['layers.1.self_attn'])
    """
    known = [name for name in names if name]
    if any(sign in asked for sign in "*?["):
        found = [name for name in known if fnmatchcase(name, asked) or fnmatchcase(name, f"*.{asked}")]
    else:
        found = [name for name in known if name == asked] or [name for name in known if name.endswith(f".{asked}")]
        if len(found) > 1:
            pattern = f"*.{asked}"
            raise ArgumentError("edit-name-ambiguous", asked=asked, count=len(found), first=found[0], pattern=pattern)
    if not found and asked in ("", "attention"):  # what a trace calls a model that is itself the attention
        found = [""]
    if not found:
        raise unknown(asked, known)
    return frozenset(_attention_in(names, name) for name in found)


def _modules_in_layer(names: Names, number: int) -> frozenset[str]:
    """The modules of the layer with that number. Encoder and decoder both have one: then a name is asked for."""
    layers = layers_numbered(number, [name for name in names if name])
    if len(layers) > 1:
        raise ArgumentError("edit-layer-several", asked=number, names=Listed(repr(name) for name in layers))
    inside = [name for name in names if name == layers[0] or name.startswith(f"{layers[0]}.")]
    return frozenset(_attention_in(names, name) for name in inside)


def _attention_in(names: Names, name: str) -> str:
    if not isinstance(names.around(name)[-1], nn.TransformerEncoderLayer):
        return name
    return f"{name}.self_attn" if name else "self_attn"


def _heads(name: str | int, given: Any) -> tuple[int, ...]:
    heads = (given,) if is_whole(given) else tuple(given) if _is_list(given) else ()
    if not heads or not all(is_whole(head) and head >= 0 for head in heads):
        raise ArgumentError("edit-heads", asked=name, found=given)
    return tuple(int(head) for head in heads)


def _cut(name: str | int, given: Any) -> dict[str, Any]:
    if isinstance(given, Mask) or is_tensor(given) or isinstance(given, np.ndarray):
        return {"mask": Mask.of(given)}
    edges = [tuple(edge) if _is_list(edge) else (edge,) for edge in given] if _is_list(given) else []
    if not edges or not all(len(edge) in (2, 3) and all(map(is_whole, edge)) for edge in edges):
        raise ArgumentError("edit-edges", asked=name, found=given)
    if any(len(edge) == 3 and edge[0] < 0 for edge in edges):
        raise ArgumentError("edit-heads", asked=name, found=min(edges)[0])
    return {"edges": tuple((None, *map(int, edge)) if len(edge) == 2 else tuple(map(int, edge)) for edge in edges)}


def _is_list(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping)


def _pattern(given: Any) -> Record:
    """Weights, checked as those of a Trace are; a Record, if it still has all of its own."""
    if not isinstance(given, Record):
        return record_of(given, map=None)
    weights = given.weights()  # rows may sum to less than 1, where a model has sinks
    return Record(shape=given.shape, name=given.name, rectangle=lambda rows, cols: weights[..., rows, cols])
