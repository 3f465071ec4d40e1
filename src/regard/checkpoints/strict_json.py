"""Strict JSON parsing for untrusted files: no duplicate keys, no NaN, and a single type of error."""

import json
from typing import Any


class JsonError(ValueError):
    """Invalid JSON; the text is the place of the error. Callers convert it to an error about their file."""


def parse(content: bytes) -> Any:
    """The value of a JSON text in UTF-8.

    >>> parse(b'{"d_model": 8, "d_model": 16}')
    Traceback (most recent call last):
    regard.checkpoints.strict_json.JsonError: d_model
    """
    try:
        return json.loads(content.decode(), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.lineno}:{error.colno}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5,000 digits, a thousand brackets
        raise JsonError("JSON") from error


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
