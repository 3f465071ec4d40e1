"""Conversion of a TransformerConfig to a tree of JSON values and back. Every field is written, defaults too.

If a field may hold one of several classes, the key "is" names it; no name leads to an import. A tree is untrusted
input: every key, type and size is checked before a config is built. File access is in `checkpoints`.
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from reprlib import repr as shortened
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from regard.config.positions import (
    Alibi,
    Learned,
    LinearScaling,
    Llama3Scaling,
    NtkScaling,
    Relative,
    Rotary,
    Sinusoidal,
    YarnScaling,
)
from regard.config.transformer import TransformerConfig
from regard.errors import ArgumentError
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
}
_NAME_OF = {kind: name for name, kind in KINDS.items()}

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
_LARGEST_INTEGER = 2**31
_LARGEST_FLOAT = 1e300  # a larger integer would raise OverflowError; NaN fails this comparison too

_JSON = {NoneType: "null", dict: "object", list: "list", tuple: "list"}


def to_tree(config: TransformerConfig) -> dict[str, Any]:
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
        return tag | {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def from_tree(tree: Any) -> TransformerConfig:
    """The config that `to_tree` wrote. Any invalid tree raises a RegardError with the path of the wrong value.

    >>> config = TransformerConfig.llama()
    >>> from_tree(to_tree(config)) == config
    True
    """
    return _read(tree, TransformerConfig, "config")


def _read(found: Any, hint: Any, place: str) -> Any:
    """The value found, converted to the type hint of its field."""
    if get_origin(hint) is Literal:
        return _read_choice(found, get_args(hint), place)
    kinds = get_args(hint) or (hint,)
    classes = [kind for kind in kinds if is_dataclass(kind)]
    if isinstance(found, dict) and classes:
        return _read_object(found, classes, place)
    several = next((kind for kind in kinds if get_origin(kind) is tuple), None)
    if isinstance(found, list) and several is not None:
        return tuple(_read(part, get_args(several)[0], f"{place}[{i}]") for i, part in enumerate(found))
    if type(found) is int and int in kinds:
        most = LARGEST_SIZES.get(place.rpartition(".")[2], _LARGEST_INTEGER)
        if abs(found) > most:
            raise ArgumentError("tree-large", place=place, most=most)
        return found
    if type(found) in (int, float) and float in kinds and abs(found) < _LARGEST_FLOAT:
        return float(found)
    if type(found) in (bool, NoneType) and type(found) in kinds:
        return found
    raise _type_error(found, kinds, place)


def _read_choice(found: Any, choices: Sequence[str], place: str) -> str:
    if not isinstance(found, str):
        raise _type_error(found, (str,), place)
    if found not in choices:
        raise ArgumentError("unknown-choice", name=place, value=found[:40], choices=Listed(choices))
    return found


def _read_object(found: dict[Any, Any], classes: list[Any], place: str) -> Any:
    chosen, tag = classes[0], []
    if len(classes) > 1:
        chosen = KINDS[_read_choice(found.get("is"), [_NAME_OF[kind] for kind in classes], f"{place}.is")]
        tag = ["is"]
    hints = _hints(chosen)
    known = [*tag, *hints]
    missing = [name for name in known if name not in found]
    if missing:
        raise ArgumentError("tree-missing", place=place, missing=Listed(missing))
    unknown = [shortened(name) for name in found if name not in known]
    if unknown:
        raise ArgumentError("tree-unknown", place=place, unknown=Listed(unknown[:5]), known=Listed(known))
    return chosen(**{name: _read(found[name], hint, f"{place}.{name}") for name, hint in hints.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their type hints."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _type_error(found: Any, kinds: tuple[Any, ...], place: str) -> ArgumentError:
    wanted = ("object" if is_dataclass(kind) else _JSON.get(get_origin(kind) or kind, kind.__name__) for kind in kinds)
    # Only short values are shown: Python raises for the repr of an integer with a million digits.
    shown = shortened(found) if isinstance(found, str | float) else _JSON.get(type(found), type(found).__name__)
    return ArgumentError("tree-type", place=place, wanted=Listed(dict.fromkeys(wanted)), found=shown)
