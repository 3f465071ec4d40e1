"""JSON and TOML as text: strict parsing of untrusted text, with one type of error for each, and writing of TOML.

`config.tree` converts what is parsed here to dataclasses.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from regard.messages import say

Table = dict[str, Any]
_DEEPEST = 16
"""The deepest nesting of tables and arrays in a TOML text; the recipes have four levels."""


# --- JSON ------------------------------------------------------------------------------------------------


class JsonError(ValueError):
    """Invalid JSON; the text is the place of the error. Callers convert it to an error about their file."""


def parse_json(content: bytes, deepest: int | None = None) -> Any:
    """The value of a JSON text in UTF-8, in which objects and lists are nested at most `deepest` times.

    >>> parse_json(b'{"d_model": 8, "d_model": 16}')
    Traceback (most recent call last):
    regard.files.json_and_toml.JsonError: d_model
    """
    try:
        found = json.loads(content.decode(), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.lineno}:{error.colno}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5,000 digits, a thousand brackets
        raise JsonError("JSON") from error
    if deepest is not None:
        _check_depth(found, deepest)
    return found


def _check_depth(found: Any, deepest: int) -> None:
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(deepest):
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
        level = [part for part in level if isinstance(part, dict | list)]
        if not level:
            return
    raise JsonError(f"{deepest} × [ {{")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a dict. Raises JsonError for a duplicate key, of which `json` would silently keep the last."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise JsonError(name[:40])
        found[name] = value
    return found


def _refuse_constant(constant: str) -> Any:
    raise JsonError(constant)


# --- TOML ------------------------------------------------------------------------------------------------


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
