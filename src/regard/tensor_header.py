"""The header of a safetensors file, looked at before anyone parses it: eight bytes of length, then JSON.

A header costs many times its size once it is parsed, so its length and the number of its parts are held against the
file first. Which tensors there should be, and what a header means, is not known here.
"""

import re
from typing import NamedTuple

MOST_AXES = 8
LARGEST_SIZE = 2**31 - 1
"""Of one axis."""

# One walk whatever the bytes: nothing is tried twice, and a string that does not end goes to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z|\\\Z)', re.DOTALL)


class Excess(NamedTuple):
    """What there is too much of, how much, and the most there may be."""

    place: str
    found: int
    most: int


def parts_in(header: bytes, sign: bytes, most: int) -> int:
    """How often a sign of JSON stands in the header outside of strings; counted exactly only where that matters."""
    if (found := header.count(sign)) <= most:
        return found
    return _STRING.sub(b'""', header).count(sign)


def excess(header: bytes, most_objects: int, most_lists: int, most_values: int) -> Excess | None:
    """What the header has too much of, if anything: objects, lists, or values after a comma."""
    for place, sign, most in (("{", b"{", most_objects), ("[", b"[", most_lists), (",", b",", most_values)):
        if (found := parts_in(header, sign, most)) > most:
            return Excess(f"header, '{place}'", found, most)
    return None
