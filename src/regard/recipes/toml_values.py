"""Conversion between dataclasses and TOML tables, used for every part of a recipe.

Strict: an unknown key is an error that names the nearest known one; a wrong type is an error with its place. TOML has
no null, so "none" stands for None. Independent of recipes; each dataclass checks its own ranges.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from reprlib import repr as shortened
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from regard.config.transformer import OTHER_LIBRARY_NAMES
from regard.config.tree import KINDS, LARGEST_SIZES
from regard.errors import ArgumentError, UnknownNameError
from regard.messages import Listed, say

Table = dict[str, Any]
_WORD_OF = {kind: word for word, kind in KINDS.items()}
_MOST_OF_ANYTHING = 2**53
_DEEPEST = 16
"""The deepest nesting of tables and arrays in a TOML text; the recipes have four levels."""
# TOML's names of types, the same in every language.
_TOML = {bool: "boolean", int: "integer", float: "float", str: "string", dict: "table", list: "array", tuple: "array"}
_TOML |= {NoneType: '"none"'}


def read_table(kind: Any, table: Any, place: str, base: Any = None) -> Any:
    """The dataclass that a table describes. Missing keys take their value from `base`, or their default.

    >>> from regard.config import Norm
    >>> read_table(Norm, {"place": "pre"}, "model.norm", base=Norm(eps=1e-6))
    Norm(kind='layer', place='pre', eps=1e-06, final=False)
    """
    if not isinstance(table, dict):
        raise _type_error(table, (dict,), place)
    hints = _hints(kind)
    check_keys(table, hints, place)
    values = {
        name: _read(found, hints[name], f"{place}.{name}" if place else name, getattr(base, name, None))
        for name, found in table.items()
    }
    if base is not None:
        return replace(base, **values)
    needed = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    missing = [name for name in needed if name not in values]
    if missing:
        raise ArgumentError("recipe-missing", place=place or "recipe", missing=Listed(missing))
    return kind(**values)


def check_keys(table: Mapping[str, Any], known: Any, place: str) -> None:
    """UnknownNameError, with the nearest known key, if the table has an unknown one."""
    for key in table:
        if key not in known:
            ours = OTHER_LIBRARY_NAMES.get(key)
            nearest = ours if ours in known else get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise UnknownNameError(
                "recipe-unknown-key", place=place or "recipe", asked=key, nearest=nearest, known=Listed(known)
            )


def _read(found: Any, hint: Any, place: str, base: Any) -> Any:
    """A value converted to the type hint of its field."""
    kinds = () if get_origin(hint) is Literal else get_args(hint) if _is_union(hint) else (hint,)
    if found == "none" and NoneType in kinds and str not in kinds:
        return None
    if get_origin(hint) is Literal:
        return _read_choice(found, get_args(hint), place)
    classes = [kind for kind in kinds if is_dataclass(kind)]
    if classes:
        return _read_table_of(found, classes, place, base)
    tuple_hint = next((kind for kind in kinds if get_origin(kind) is tuple), None)
    if tuple_hint is not None and (isinstance(found, list) or type(found) is str):
        return _read_tuple(found if isinstance(found, list) else [found], tuple_hint, place)
    if dict in (get_origin(kind) for kind in kinds) and isinstance(found, dict):
        return found
    if type(found) is int and int in kinds:
        most = LARGEST_SIZES.get(place.rpartition(".")[2], _MOST_OF_ANYTHING)
        if abs(found) > most:
            raise ArgumentError("recipe-large", place=place, most=most)
        return found
    if type(found) in (int, float) and float in kinds and abs(found) < 2**1000 and math.isfinite(found):
        return float(found)
    if type(found) in (bool, str) and type(found) in kinds:
        return found
    raise _type_error(found, kinds, place)


def _read_choice(found: Any, choices: tuple[str, ...], place: str) -> str:
    if not isinstance(found, str):
        raise _type_error(found, (str,), place)
    if found not in choices:
        raise ArgumentError("unknown-choice", name=place, value=found[:40], choices=Listed(choices))
    return found


def _read_tuple(found: list[Any], hint: Any, place: str) -> tuple[Any, ...]:
    """A list as a tuple, of any length or of the length of the hint."""
    inner = get_args(hint)
    kinds = inner[:1] * len(found) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(found):
        raise ArgumentError("recipe-count", place=place, wanted=len(kinds), found=len(found))
    return tuple(
        _read(part, kind, f"{place}[{i}]", None) for i, (part, kind) in enumerate(zip(found, kinds, strict=True))
    )


def _read_table_of(found: Any, classes: list[Any], place: str, base: Any) -> Any:
    """A nested table. If several dataclasses are allowed, the key "is" names one; a plain string is short for it."""
    if len(classes) == 1:
        return read_table(classes[0], found, place, base)
    table = {"is": found} if isinstance(found, str) else found
    if not isinstance(table, dict):
        raise _type_error(found, (dict,), place)
    words = tuple(_WORD_OF[kind] for kind in classes)
    word = _read_choice(table.get("is", _WORD_OF.get(type(base))), words, f"{place}.is")
    kept = base if type(base) is KINDS[word] else None
    return read_table(KINDS[word], {name: each for name, each in table.items() if name != "is"}, place, kept)


def _is_union(hint: Any) -> bool:
    return len(get_args(hint)) > 1 and get_origin(hint) not in (tuple, dict, Literal)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their type hints."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _type_error(found: Any, kinds: tuple[Any, ...], place: str) -> ArgumentError:
    origins = (get_origin(kind) or kind for kind in kinds)
    wanted = dict.fromkeys(_TOML.get(kind, "table") for kind in origins)
    shown = shortened(found) if isinstance(found, str | float) else _TOML.get(type(found), type(found).__name__)
    return ArgumentError("recipe-type", place=place, wanted=Listed(wanted), found=shown)


# --- parsing and writing TOML ----------------------------------------------------------------------------


def parse_toml(text: str) -> Table:
    """The table of a TOML text. Raises TOMLDecodeError for every invalid text.

    `tomllib` itself raises RecursionError for a thousand brackets and ValueError for a number of 5,000 digits.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(say("toml-deep", most=_DEEPEST)) from None
    except ValueError:
        raise tomllib.TOMLDecodeError(say("toml-digits")) from None
    level: list[Any] = [table]
    for _ in range(_DEEPEST):  # dotted keys nest without brackets
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in level if isinstance(part, dict | list)]
    if level:
        raise tomllib.TOMLDecodeError(say("toml-deep", most=_DEEPEST))
    return table


def parse_value(text: str) -> Any:
    """A value from TOML syntax; text that is not TOML is a string, so that quotes are optional.

    >>> parse_value("1e-3"), parse_value("[0.9, 0.98]"), parse_value("bytes")
    (0.001, [0.9, 0.98], 'bytes')
    """
    try:
        parsed = parse_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def plain_table(value: Any) -> Table:
    """The fields of a dataclass as plain values, without those that are None or () by default and now."""
    table = {}
    for field in fields(value):
        found = getattr(value, field.name)
        if found != field.default or (found is not None and found != ()):
            table[field.name] = _plain(found)
    return table


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return plain_table(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return "none" if value is None else value


def write_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: plain values first, then each table under its name; nested tables are inline.

    >>> print(write_toml({"name": "copy", "model": {"d_model": 64, "norm": {"place": "pre"}}}), end="")
    name = "copy"
    <BLANKLINE>
    [model]
    d_model = 64
    norm = { place = "pre" }
    """
    lines = [f"{name} = {_inline(each)}" for name, each in table.items() if not isinstance(each, dict)]
    for name, part in table.items():
        if isinstance(part, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_inline(each)}" for key, each in part.items())]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_inline(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str):
        # JSON's escapes are valid in TOML; TOML also requires an escape for DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)  # a float's repr reads back exactly
