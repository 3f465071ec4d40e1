"""Strict conversion of untrusted trees (JSON, TOML) to dataclasses, and of a TransformerConfig to a tree and back.

If a field may hold one of several classes, the key "is" names it; no name leads to an import. Every key, type and size
is checked before an object is built. `TreeReader` serves every format: each caller passes what differs, above all the
text of its errors. Files and their text are in `files` and `checkpoints`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from reprlib import repr as shortened
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from regard.config.recurrent import RecurrentConfig
from regard.config.styles import (
    Alibi,
    Embeddings,
    FactorScaling,
    Learned,
    LinearScaling,
    Llama3Scaling,
    Norm,
    NtkScaling,
    Output,
    Relative,
    Rotary,
    Sinusoidal,
    YarnScaling,
)
from regard.config.transformer import TransformerConfig
from regard.errors import ArgumentError, RegardError
from regard.messages import Listed

KINDS: dict[str, type] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rotary": Rotary,
    "alibi": Alibi,
    "relative": Relative,
    "linear": LinearScaling,
    "ntk": NtkScaling,
    "yarn": YarnScaling,
    "llama3": Llama3Scaling,
    "factors": FactorScaling,
}
_NAME_OF = {kind: name for name, kind in KINDS.items()}

LATER_FIELDS: dict[type, frozenset[str]] = {
    Norm: frozenset({"plus_one"}),
    Embeddings: frozenset({"rounded_scale"}),
    Output: frozenset({"softcap"}),
    Rotary: frozenset({"fraction", "local_base"}),
}
"""Fields that older files do not have: a file has them only where their value is not the default."""

LARGEST_SIZES: dict[str, int] = {
    "n_encoder_layers": 1024,
    "n_decoder_layers": 1024,
    "d_model": 2**17,
    "d_ff": 2**20,
    "d_head": 2**17,
    "n_heads": 2**17,
    "n_kv_heads": 2**17,
    "vocab_size": 2**22,
    "source_vocab_size": 2**22,
    "n_segments": 2**22,
    "max_len": 2**24,
    "n_buckets": 2**10,
    "max_distance": 2**16,
}
"""The largest accepted sizes: no model exceeds them, and computation with larger ones might never end."""
_LARGEST_FLOAT = 2.0**1000  # a much larger integer would raise OverflowError; NaN fails this comparison too

JSON_TYPES: dict[Any, str] = {NoneType: "null", dict: "object", list: "list", tuple: "list"}
JSON_TYPES |= {kind: kind.__name__ for kind in (bool, int, float, str)}


class Fault(NamedTuple):
    """What is wrong at one place of a tree.

    kind     found                          wanted
    type     the value, as text             names of types
    choice   the value, as text             the choices
    large    the integer                    the largest accepted one
    count    the length of a list           the length it must have
    missing  the keys of the table          the missing ones
    unknown  the unknown keys, as text      the known ones
    """

    kind: Literal["type", "choice", "large", "count", "missing", "unknown"]
    place: str
    found: Any
    wanted: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeReader:
    """Converts trees of plain values to dataclasses and other typed values. Its fields are what differs by format.

    error         makes the error for a fault
    type_names    the format's names of types
    largest       the largest integer, except for the names in LARGEST_SIZES
    none          what stands for None; a field that may be a string cannot hold it
    is_complete   whether every key is required, also one that has a default
    is_brief      whether a string may stand for a list of one string, or for a table in which only "is" is set
    """

    error: Callable[[Fault], RegardError]
    type_names: Mapping[Any, str]
    largest: int = 2**53
    none: str | None = None
    is_complete: bool = False
    is_brief: bool = False

    def table(self, found: Any, kind: Any, place: str, base: Any = None) -> Any:
        """The dataclass `kind` that a table describes. Missing keys take their value from `base`, or their default."""
        if not isinstance(found, dict):
            raise self._type_error(found, (kind,), place)
        hints = _hints(kind)
        self.check_keys(found, hints, place)
        required = [] if base is not None else hints if self.is_complete else _required(kind)
        missing = [name for name in required if name not in found and name not in LATER_FIELDS.get(kind, ())]
        if missing:
            raise self.error(Fault("missing", place, list(found), missing))
        values = {
            name: self.value(part, hints[name], f"{place}.{name}" if place else name, getattr(base, name, None))
            for name, part in found.items()
        }
        return kind(**values) if base is None else replace(base, **values)

    def check_keys(self, table: Mapping[Any, Any], known: Collection[str], place: str) -> None:
        """Raise the error for unknown keys, if the table has any."""
        unknown = [name if isinstance(name, str) else shortened(name) for name in table if name not in known]
        if unknown:
            raise self.error(Fault("unknown", place, unknown, list(known)))

    def value(self, found: Any, hint: Any, place: str, base: Any = None) -> Any:
        """A value converted to a type hint; `base` is the value that a nested table changes."""
        if hint is Any:
            return found
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if NoneType in kinds and (found is None if self.none is None else found == self.none and str not in kinds):
            return None
        by_origin = {get_origin(kind): kind for kind in kinds}
        if Literal in by_origin:
            return self._choice(found, get_args(by_origin[Literal]), place)
        classes = [kind for kind in kinds if is_dataclass(kind)]
        if classes and (isinstance(found, dict) or (len(classes) > 1 and self._is_short(found))):
            return self._object(found, classes, place, base)
        if tuple in by_origin and (isinstance(found, list) or self._is_short(found)):
            return self._tuple(found if isinstance(found, list) else [found], get_args(by_origin[tuple]), place)
        if dict in by_origin and isinstance(found, dict):
            hint_of_parts = get_args(by_origin[dict])[1]
            return {name: self.value(part, hint_of_parts, f"{place}.{name}") for name, part in found.items()}
        return self._plain_value(found, kinds, place)

    def _plain_value(self, found: Any, kinds: tuple[Any, ...], place: str) -> Any:
        if type(found) is int and int in kinds:
            most = LARGEST_SIZES.get(place.rpartition(".")[2], self.largest)
            if abs(found) > most:
                raise self.error(Fault("large", place, found, most))
            return found
        if type(found) in (int, float) and float in kinds and abs(found) < _LARGEST_FLOAT:
            return float(found)
        if type(found) in (bool, str) and type(found) in kinds:
            return found
        raise self._type_error(found, kinds, place)

    def _is_short(self, found: Any) -> bool:
        return self.is_brief and isinstance(found, str)

    def _choice(self, found: Any, choices: Sequence[str], place: str) -> str:
        if not isinstance(found, str):
            raise self._type_error(found, (str,), place)
        if found not in choices:
            raise self.error(Fault("choice", place, found[:40], choices))
        return found

    def _tuple(self, found: list[Any], hints: tuple[Any, ...], place: str) -> tuple[Any, ...]:
        """A list as a tuple, of any length or of the length of the hints."""
        hints = hints[:1] * len(found) if hints[-1] is Ellipsis else hints
        if len(hints) != len(found):
            raise self.error(Fault("count", place, len(found), len(hints)))
        parts = enumerate(zip(found, hints, strict=True))
        return tuple(self.value(part, hint, f"{place}[{i}]") for i, (part, hint) in parts)

    def _object(self, found: Any, classes: list[Any], place: str, base: Any) -> Any:
        """A nested table. If several dataclasses are allowed, the key "is" names one."""
        if len(classes) == 1:
            return self.table(found, classes[0], place, base)
        table = {"is": found} if isinstance(found, str) else found
        names = [_NAME_OF[kind] for kind in classes]
        chosen = KINDS[self._choice(table.get("is", _NAME_OF.get(type(base))), names, f"{place}.is")]
        rest = {name: part for name, part in table.items() if name != "is"}
        return self.table(rest, chosen, place, base if type(base) is chosen else None)

    def _type_error(self, found: Any, kinds: tuple[Any, ...], place: str) -> RegardError:
        wanted = dict.fromkeys(
            self.type_names[dict if is_dataclass(kind) else get_origin(kind) or kind] for kind in kinds
        )
        # Only short values are shown: Python raises for the repr of an integer with a million digits.
        is_shown = isinstance(found, str | float)
        shown = shortened(found) if is_shown else self.type_names.get(type(found), type(found).__name__)
        return self.error(Fault("type", place, shown, list(wanted)))


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their type hints."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def _required(kind: type) -> list[str]:
    """The fields of a dataclass that have no default."""
    return [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]


# --- configs ---------------------------------------------------------------------------------------------


def to_tree(config: TransformerConfig | RecurrentConfig) -> dict[str, Any]:
    """The config as dictionaries, lists and plain values.

    >>> to_tree(TransformerConfig.gpt2())["norm"]
    {'kind': 'layer', 'place': 'pre', 'eps': 1e-05, 'final': True}
    >>> to_tree(TransformerConfig.llama("135M"))["positions"]
    {'is': 'rotary', 'base': 100000.0, 'pairing': 'halves', 'scaling': None}
    """
    return _to_json(config)


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        tag = {"is": _NAME_OF[type(value)]} if type(value) in _NAME_OF else {}
        return tag | {
            field.name: _to_json(getattr(value, field.name)) for field in fields(value) if _is_in_file(value, field)
        }
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _is_in_file(value: Any, field: Field[Any]) -> bool:
    later = LATER_FIELDS.get(type(value), frozenset())
    return field.name not in later or getattr(value, field.name) != field.default


def from_tree(tree: Any) -> TransformerConfig:
    """The config that `to_tree` wrote. Any invalid tree raises a RegardError with the path of the wrong value.

    >>> config = TransformerConfig.llama()
    >>> from_tree(to_tree(config)) == config
    True
    """
    config: TransformerConfig = _JSON.table(tree, TransformerConfig, "config")
    return config


def recurrent_from_tree(tree: Any) -> RecurrentConfig:
    """The config of a recurrent model that `to_tree` wrote.

    >>> config = RecurrentConfig(cell="lstm", vocab_size=9, d_model=4, d_state=8)
    >>> recurrent_from_tree(to_tree(config)) == config
    True
    """
    config: RecurrentConfig = _JSON.table(tree, RecurrentConfig, "config")
    return config


def _config_error(fault: Fault) -> ArgumentError:
    place, found, wanted = fault.place, fault.found, fault.wanted
    match fault.kind:
        case "choice":
            return ArgumentError("unknown-choice", name=place, value=found, choices=Listed(wanted))
        case "large":
            return ArgumentError("tree-large", place=place, most=wanted)
        case "missing":
            return ArgumentError("tree-missing", place=place, missing=Listed(wanted))
        case "unknown":
            unknown = Listed(shortened(name) for name in found[:5])
            return ArgumentError("tree-unknown", place=place, unknown=unknown, known=Listed(wanted))
    return ArgumentError("tree-type", place=place, wanted=Listed(wanted), found=found)


_JSON = TreeReader(error=_config_error, type_names=JSON_TYPES, largest=2**31, is_complete=True)
