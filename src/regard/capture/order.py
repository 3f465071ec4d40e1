"""Names where no frame tells them: compiled code runs many modules in one frame. They are then taken in their order."""

import re
from collections import Counter

from regard.capture.names import Names, Place

_ATTENTION = re.compile(r"att(entio)?n|multi_?head", re.I)


class Order:
    """Is asked at every attention, and counts those of modules that only contain what computes it."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._inside: dict[str, list[Place]] = {}
        self._counts: Counter[str] = Counter()

    def placed(self, place: Place) -> Place:
        """The attention whose turn it is, inside a module that contains some; the module itself where it has none."""
        if place.name not in self._inside:
            self._inside[place.name] = self._attentions(place)
        inside = self._inside[place.name]
        if not inside:
            return place
        self._counts[place.name] += 1
        return inside[(self._counts[place.name] - 1) % len(inside)]

    def misfit(self) -> tuple[int, int] | None:
        """How many calls there were, and how many modules, where the one is no multiple of the other."""
        for name, count in self._counts.items():
            if count % len(self._inside[name]):
                return count, len(self._inside[name])
        return None

    def _attentions(self, place: Place) -> list[Place]:
        """The innermost modules that by their class are attention; none where the place itself is one."""
        if is_attention(place):
            return []
        start = f"{place.name}." if place.name else ""
        inside = [one for one in self._names.places if one.name.startswith(start) and is_attention(one)]
        return [one for one in inside if not any(other.name.startswith(f"{one.name}.") for other in inside)]


def is_attention(place: Place) -> bool:
    """Whether a module is attention, by the name of its class."""
    return bool(_ATTENTION.search(type(place.module).__name__))
