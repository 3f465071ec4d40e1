"""A value as the bytes of one line of JSON that can be read again, or an error that says why not."""

import json
from typing import Any

from regard.checkpoints.strict_json import parse
from regard.errors import ArgumentError


def json_bytes(name: str, value: Any) -> bytes:
    """One line, without its end. ArgumentError for NaN, infinity and whatever else JSON has no word for.

    >>> json_bytes("line", {"step": 1, "loss": 9.5})
    b'{"step": 1, "loss": 9.5}'
    """
    try:
        content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        parse(content)  # 1 and "1" are two keys of a dict, and one of JSON's
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError("not-json", name=name, reason=str(error)) from error
    return content
