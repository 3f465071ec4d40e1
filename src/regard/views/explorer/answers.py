"""Answer: what a source returns to the front end, its binary form, and the messages of a widget.

    bytes 0–3    the length of the JSON, little-endian
    JSON         {"about": {…}, "arrays": [{"name", "dtype", "shape"}, …]}, in UTF-8
    arrays       one after the other, little-endian, each at the next multiple of 8 bytes

A file stores this form compressed (zlib) in base64. A widget receives `{id, ask, …}` and replies `{id, about, arrays}`
with the arrays as buffers; an error is a sentence in both languages, `{id, error: {key, text: {en, zh}}}`.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from regard.errors import ArgumentError, RegardError
from regard.messages import LANGUAGES, Listed

DTYPES = ("f8", "f4", "f2", "i4", "u1")
"""double, float32, half float, int32 and bytes: all that the front end reads."""
SMALLEST = 2.0**-24
"""The smallest half float: a smaller weight must not become 0, which means masked."""
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a source returns for one request."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def forms(self) -> list[dict[str, Any]]:
        """Name, dtype and shape of each array."""
        return [
            {"name": name, "dtype": array.dtype.str[1:], "shape": list(array.shape)}
            for name, array in self.arrays.items()
        ]

    def buffers(self) -> list[bytes]:
        """The arrays as bytes, in the order of `forms`."""
        return [_bytes(array) for array in self.arrays.values()]

    def binary(self) -> bytes:
        """The whole answer as bytes.

        >>> found = read_answer(Answer({"head": 3}, {"cells": np.eye(2, dtype="f4")}).binary())
        >>> found.about, found.arrays["cells"].tolist()
        ({'head': 3}, [[1.0, 0.0], [0.0, 1.0]])
        """
        head = json.dumps({"about": self.about, "arrays": self.forms}, ensure_ascii=False, allow_nan=False).encode()
        parts = [len(head).to_bytes(4, "little"), head]
        length = 4 + len(head)
        for buffer in self.buffers():
            gap = -length % _ALIGNMENT
            parts += [bytes(gap), buffer]
            length += gap + len(buffer)
        return b"".join(parts)

    def compressed(self) -> str:
        """The binary form for a file: compressed, in base64."""
        return base64.b64encode(zlib.compress(self.binary())).decode("ascii")


def read_answer(data: bytes) -> Answer:
    """The answer of a binary form."""
    start = 4 + int.from_bytes(data[:4], "little")
    head = json.loads(data[4:start])
    arrays = {}
    for form in head["arrays"]:
        start += -start % _ALIGNMENT
        dtype = np.dtype(f"<{form['dtype']}")
        count = int(np.prod(form["shape"], dtype=np.int64))
        arrays[form["name"]] = np.frombuffer(data, dtype, count, start).reshape(form["shape"])
        start += count * dtype.itemsize
    return Answer(head["about"], arrays)


def read_compressed(text: str) -> Answer:
    """The answer that a file stores."""
    return read_answer(zlib.decompress(base64.b64decode(text)))


def half_floats(cells: np.ndarray) -> np.ndarray:
    """The cells as half floats; weights that are not masked stay above 0.

    >>> half_floats(np.array([0.0, 1e-12, 0.5])) > 0
    array([False,  True,  True])
    """
    return np.where(cells > 0, np.maximum(cells, SMALLEST), cells).astype(np.float16)


def _bytes(array: np.ndarray) -> bytes:
    if array.dtype.str[1:] not in DTYPES:
        raise AssertionError(f"the front end does not read {array.dtype}")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


ARGUMENTS: dict[str, tuple[str, ...]] = {
    "overview": (),
    "head": ("layer", "head"),
    "rectangle": ("layer", "head", "rows", "cols", "most"),
    "explain": ("layer", "head", "query", "most"),
    "effect": ("silence", "cut"),
    "compare": ("layer", "head", "other"),
}
"""What can be asked, and the arguments of each request."""


class Source(Protocol):
    """What answers requests: a method for each; one that is missing is refused."""

    def overview(self) -> Answer: ...


def answered(source: Source, message: Any) -> tuple[dict[str, Any], list[bytes]]:
    """The reply to a message, and its buffers. Raises nothing: every error is a sentence."""
    number = message.get("id") if isinstance(message, Mapping) else None
    try:
        answer = _ask(source, message)
        return {"id": number, "about": answer.about, "arrays": answer.forms}, answer.buffers()
    except RegardError as error:
        return {"id": number, "error": sentence(error)}, []
    except Exception as error:  # a kernel must answer, or the front end waits for ever
        failed = ArgumentError("source-failed", reason=f"{type(error).__name__}: {error}")
        return {"id": number, "error": sentence(failed)}, []


def sentence(error: RegardError) -> dict[str, Any]:
    """An error as the front end shows it, in both languages."""
    return {"key": error.key, "text": {lang: error.text(lang) for lang in LANGUAGES}}


def _ask(source: Source, message: Any) -> Answer:
    ask = message.get("ask") if isinstance(message, Mapping) else None
    method = getattr(source, ask, None) if isinstance(ask, str) and ask in ARGUMENTS else None
    if method is None:
        raise ArgumentError("option-unknown", option="ask", asked=ask, choices=Listed(ARGUMENTS))
    assert isinstance(ask, str)
    given = {name: message[name] for name in ARGUMENTS[ask] if message.get(name) is not None}
    for name, value in given.items():
        if not _is_plain(value):
            raise ArgumentError("source-argument", name=name, ask=ask, found=str(value)[:80])
    found: Answer = method(**given)
    return found


def _is_plain(value: Any) -> bool:
    """Whether it is an integer, a pair of integers, or a dict of integers."""
    numbers = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
    return all(isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**53 for number in numbers)
