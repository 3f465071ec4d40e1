"""JSON as strictly as a file from elsewhere deserves: no key twice, no NaN, and one kind of error whatever it holds."""

import json
from typing import Any


class JsonError(ValueError):
    """What is not JSON, with the place where it stops making sense; the file that holds it says so in its own words."""


def parse(content: bytes) -> Any:
    """The value of UTF-8 JSON.

    >>> parse(b'{"d_model": 8, "d_model": 16}')
    Traceback (most recent call last):
    regard.checkpoints.strict_json.JsonError: d_model
    """
    try:
        return json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_refused)
    except JsonError:
        raise
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.lineno}:{error.colno}") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of 5,000 digits, a thousand brackets
        raise JsonError("JSON") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The last of two equal keys would win silently."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise JsonError(name[:40])
        found[name] = value
    return found


def _refused(constant: str) -> Any:
    raise JsonError(constant)
